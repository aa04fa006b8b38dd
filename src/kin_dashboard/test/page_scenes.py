"""Stand-ins for the node, the scene and the widgets, which remember what is done with them."""

from types import SimpleNamespace

from builtin_interfaces.msg import Time
from rclpy.task import Future


class Widget:
    """A widget or an object of the scene; takes any attribute."""

    content = ""

    def __init__(self, kind, arguments, options):
        self.kind, self.arguments = kind, arguments
        self.value = arguments[1] if len(arguments) > 1 else None
        self.removed = False
        for name, value in options.items():
            setattr(self, name, value)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def on_click(self, act):
        self.click = act

    def on_update(self, act):
        self.update = act

    def remove(self):
        self.removed = True


class Maker:
    """A GUI or a scene: whatever is to be added is made and remembered."""

    def __init__(self):
        self.made = []

    def __getattr__(self, kind):
        def make(*arguments, **options):
            self.made.append(Widget(kind, arguments, options))
            return self.made[-1]

        return make

    def html(self):
        """All that the widgets show."""
        return "".join(widget.content for widget in self.made)

    def named(self, word):
        """The widget whose first word is this."""
        return next(w for w in self.made if w.arguments and w.arguments[0] == word)


class Client:
    """A client of a service or an action, whose answers the test gives."""

    srv_name = "/asked"

    def __init__(self, ready=True):
        self.ready = ready
        self.sent = []

    def service_is_ready(self):
        return self.ready

    server_is_ready = service_is_ready

    def call_async(self, request, *_):
        future = Future()
        self.sent.append((request, future))
        return future

    def send_goal_async(self, goal, feedback):
        future = Future()
        self.sent.append((goal, future, feedback))
        return future


class Node:
    """The dashboard's node, as far as a panel knows it; what is posted is done at once."""

    def __init__(self):
        self.clients = {}
        self.published = []
        self.told = {}

    def post(self, action):
        action()

    def ask_of(self, _service, name):
        return self.clients.setdefault(name, Client())

    act_on = ask_of

    def publish_to(self, _message, topic, _qos):
        return SimpleNamespace(publish=lambda message: self.published.append((topic, message)))

    def attend(self, _message, _topic, _callback):
        return lambda: None

    def diagnosis(self, _node):
        return self.told

    def complaint(self, _node):
        return "", "#000000"

    def get_clock(self):
        return SimpleNamespace(now=lambda: SimpleNamespace(to_msg=Time))


def connected(panel_type, *subscribed):
    """A panel with its stand-ins; ``subscribed`` are topics, with types, that its node hears."""
    panel = panel_type(Node(), Maker())
    panel.connect()
    panel.present, panel.there = True, set(panel.node_names)
    panel.find_topics({}, {panel.node_names[0]: [(topic, [kind]) for topic, kind in subscribed]})
    return panel
