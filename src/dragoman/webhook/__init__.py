"""Push notifications, the receiving half: a webhook that takes what is genuine, once."""

from dragoman.webhook.expected import Expected
from dragoman.webhook.notification import Notification
from dragoman.webhook.receiver import Handler, Receiver
from dragoman.webhook.refusals import Answer
from dragoman.webhook.settings import ReceiverSettings
from dragoman.webhook.signatures import SenderKeys

__all__ = ["Answer", "Expected", "Handler", "Notification", "Receiver", "ReceiverSettings", "SenderKeys"]
