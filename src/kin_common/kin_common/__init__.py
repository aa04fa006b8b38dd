"""What every kinstack package shares.

The modules ``errors``, ``checks``, ``task``, ``rotations``, ``urdf`` and ``yamls`` import no ROS
and serve the libraries; ``node``, ``parameters``, ``worker``, ``loop``, ``diagnostics``, ``qos``,
``arrays``, ``status`` and ``testing`` serve the nodes.
"""

__version__ = "0.1.0"
