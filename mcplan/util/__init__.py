"""General helpers: text formatting, atomic files, progress, arguments."""
