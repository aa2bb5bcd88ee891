"""The tool server `cm_review`: in the host's own process, behind a relay, every call counted and recorded."""

from firsthand.review.server.desk import Desk, Reply
from firsthand.review.server.log import CallLog
from firsthand.review.server.serving import ToolServer

__all__ = ["CallLog", "Desk", "Reply", "ToolServer"]
