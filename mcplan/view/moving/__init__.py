"""Pictures and moving pictures of a replay: by a browser where there is one, else by a plain renderer."""
