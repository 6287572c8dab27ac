"""What servers over HTTP have in common: who may use them, strict JSON, their settings."""
