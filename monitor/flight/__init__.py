"""Flight recordings: read (`reader`), made into curves (`curves`), searched (`detect`) and shown (`report`, `page`)."""
