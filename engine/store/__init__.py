"""Message stores: `server` keeps topics in files, `reader` and `follower` read them."""
