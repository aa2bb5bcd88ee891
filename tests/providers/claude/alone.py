"""Run in a network namespace of its own: one preflight and one review, with every frame that would leave counted.

argv: the CLI, a folder. The namespace gets loopback and one other interface, whose far end is listened to; a default
route and a fixed neighbour lead there, so that whatever is sent to anywhere else is seen.
"""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from firsthand.residues import Session, StateDirectory
from firsthand.review.answer import output_schema
from firsthand_claude.flags import Asked, command_line, compact
from firsthand_claude.provider import ClaudeProvider
from providers.claude.driving import ANSWER, MODEL, SYSTEM_PROMPT, Driver, call, playing, scenario
from providers.claude.planting import without

_ETHER_IP, _ETHER_ARP, _ETHER_IPV6, _ICMPV6 = 0x0800, 0x0806, 0x86DD, 58


class Far:
    """The far end of the way out: counts frames, but not the kernel's own IPv6 housekeeping."""

    def __init__(self) -> None:
        for command in (
            "link set lo up",
            "link add near type veth peer name far",
            "addr add 192.0.2.2/24 dev near",
            "link set near up",
            "link set far up",
            "neigh add 192.0.2.1 lladdr 02:00:00:00:00:01 dev near",
            "route add default via 192.0.2.1 dev near",
        ):
            subprocess.run(["ip", *command.split()], check=True)  # noqa: S607 - wherever root has it
        self.frames: list[str] = []
        self._arrived = threading.Condition()
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
        self._socket.bind(("far", 0))
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            frame = self._socket.recv(2048)
            (kind,) = struct.unpack_from("!H", frame, 12)
            if kind in (_ETHER_IP, _ETHER_ARP) or (kind == _ETHER_IPV6 and frame[20] not in (0, _ICMPV6)):
                where = socket.inet_ntoa(frame[30:34]) if kind == _ETHER_IP else hex(kind)
                with self._arrived:
                    self.frames.append(where)
                    self._arrived.notify_all()

    def settled(self) -> list[str]:
        """All frames so far: a marker sent now arrives after everything sent before."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"marker", ("198.51.100.77", 9))
        with self._arrived:
            assert self._arrived.wait_for(lambda: "198.51.100.77" in self.frames, 10)
            frames = [frame for frame in self.frames if frame != "198.51.100.77"]
            self.frames.clear()
            return frames


def main(program: Path, folder: Path) -> dict[str, object]:
    """What left during a preflight, a review, and a bare CLI with the same endpoint."""
    far = Far()
    provider = ClaudeProvider(retries=1, managed=())
    with Session.open(StateDirectory.open(folder / "state")) as session:
        driver = Driver(provider, session, folder, program)
        diagnosis = driver.preflight(driver.server())
        preflight = far.settled()
        done = driver.review(scenario(call("read_file", path="a"), {"answer": ANSWER}))
        review = far.settled()
    asked = Asked(MODEL, "", SYSTEM_PROMPT, compact(output_schema()), (), 3)
    config = folder / "mcp.json"
    config.write_text('{"mcpServers": {}}')
    line = without(command_line(str(program), str(config), asked), "--restricted", "--effort")
    with playing({"answer": ANSWER, "times": 0}) as model:
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "ANTHROPIC_API_KEY": "x",
            "ANTHROPIC_BASE_URL": model.url,
        }
        subprocess.run(line, env=environment, cwd=folder, input=b"hello", capture_output=True, check=False, timeout=60)
    return {
        "tools": diagnosis.tools,
        "failure": done.failure,
        "preflight": preflight,
        "review": review,
        "bare": far.settled(),
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]))))  # noqa: T201 - the answer of this program
