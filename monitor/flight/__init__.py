"""Flight recordings: reading (`reader`), curves (`curves`), bursts (`detect`) and output (`text`, `page`)."""
