"""What an event is: typed event classes, event time and ids."""

from penstock.events.event import Event, new_id, new_ids, time_field, time_of
from penstock.events.kinds import Precision, fields_of

__all__ = ["Event", "Precision", "fields_of", "new_id", "new_ids", "time_field", "time_of"]
