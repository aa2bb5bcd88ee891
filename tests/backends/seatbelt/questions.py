"""What commands try on a Mac, and what the profile must answer: one question a line, in the words of `ask`."""

from __future__ import annotations

from dataclasses import dataclass

from backends.seatbelt.oracle import Oracle, Subject
from firsthand_seatbelt.paths import ancestors
from firsthand_seatbelt.profile import Grants

STATE = "/Users/ann/Library/Application Support/firsthand/s/9f2c"
COPY = f"{STATE}/copy-3"
HOME = f"{STATE}/p/ab12cd34/h"
TMPDIR = f"{STATE}/p/ab12cd34/t"
PYTHON = "/Library/Frameworks/Python.framework/Versions/3.12"
FOLDERS = "/private/var/folders/zz/zyx0000gn/T/firsthand-7c"


def _grants(*roots: str, links: tuple[str, ...] = ()) -> Grants:
    return Grants(COPY, HOME, TMPDIR, roots=(*roots, PYTHON), links=links)


LAYOUTS = {
    "brew-arm": _grants(
        "/opt/homebrew/Cellar/node/24.1.0",
        "/opt/homebrew/Cellar/icu4c@77/77.1",
        links=("/opt/homebrew/opt/icu4c@77", "/opt/homebrew/bin/node"),
    ),
    "brew-intel": _grants(
        "/usr/local/Cellar/python@3.13/3.13.2/Frameworks/Python.framework/Versions/3.13",
        links=("/usr/local/opt/python@3.13", "/usr/local/bin/python3.13"),
    ),
    "pyenv": _grants("/Users/ann/.pyenv/versions/3.12.4", links=("/Users/ann/.pyenv/versions/3.12",)),
    "nvm": _grants("/Users/ann/.nvm/versions/node/v22.11.0"),
    "go": _grants("/opt/homebrew/Cellar/go/1.24.0/libexec", links=("/opt/homebrew/opt/go",)),
    "rustup": _grants(
        "/Users/ann/.rustup/toolchains/stable-aarch64-apple-darwin", "/Library/Developer/CommandLineTools"
    ),
    "clt": _grants("/Library/Developer/CommandLineTools"),
    # The state directory in the system's per-user temporary folder.
    "folders": Grants(f"{FOLDERS}/c", f"{FOLDERS}/p/h", f"{FOLDERS}/p/t", roots=("/opt/python/3.12",)),
}

TABLE = r"""
# --- what every program needs
clt      yes read     /
clt      yes read     /usr/lib/dyld
clt      yes load     /usr/lib/libSystem.B.dylib
clt      yes load     /System/Library/Frameworks/CoreFoundation.framework/Versions/A/CoreFoundation
clt      yes load     /System/Cryptexes/OS/usr/lib/libobjc.A.dylib
clt      yes load     /System/Volumes/Preboot/Cryptexes/OS/System/Library/dyld/dyld_shared_cache_arm64e
clt      yes load     /private/preboot/Cryptexes/OS/System/Library/dyld/dyld_shared_cache_arm64e
clt      yes load     /private/var/db/dyld/dyld_shared_cache_x86_64h
clt      yes load     /private/var/db/oah/279/aa/libSystem.aot
clt      yes load     /Library/Apple/usr/libexec/oah/libRosettaRuntime
clt      yes read     /System/Library/CoreServices/SystemVersion.plist
clt      yes read     /private/var/db/timezone/zoneinfo/Europe/Paris
clt      yes read     /private/etc/localtime
clt      yes exists   /private/etc/localtime
clt      yes read     /private/var/select/sh
clt      yes exists   /private/var/select/sh
clt      yes read     /usr/share/zoneinfo/UTC
clt      yes read     /usr/share/terminfo/78/xterm
clt      yes read     /usr/libexec/path_helper
clt      yes exec     /bin/sh
clt      yes exec     /bin/bash
clt      yes exec     /usr/bin/env
clt      yes read     /usr/bin/env
clt      yes load     /bin/sh
clt      yes exists   /bin/sh
clt      yes exists   /
clt      yes fork
clt      yes sysctl   hw.ncpu
clt      yes sysctl   kern.osrelease
clt      yes sysctl   machdep.cpu.brand_string
clt      yes pidinfo  self
clt      yes control  self
clt      yes signal   self
clt      yes signal   same-sandbox
clt      yes meta     /etc
clt      yes meta     /tmp
clt      yes meta     /var
clt      yes meta     /private
clt      yes meta     /private/etc
clt      yes meta     /private/var
clt      yes meta     /usr
clt      yes meta     /System
clt      yes meta     /Library
clt      yes meta     /dev
clt      yes exists   /usr
clt      yes meta     /dev/stdin
clt      yes meta     /dev/stdout
clt      yes meta     /dev/stderr
# --- devices
clt      yes read     /dev/null
clt      yes write    /dev/null
clt      yes exists   /dev/null
clt      yes read     /dev/zero
clt      yes write    /dev/zero
clt      yes read     /dev/random
clt      yes read     /dev/urandom
clt      yes exists   /dev/urandom
clt      yes read     /dev/fd/0
clt      yes write    /dev/fd/63
clt      yes exists   /dev/fd/63
clt      no  write    /dev/urandom
clt      no  create   /dev/null
clt      no  read     /dev/disk0
clt      no  read     /dev/rdisk0
clt      no  write    /dev/disk0
clt      no  read     /dev/tty
clt      no  write    /dev/ttys001
clt      no  read     /dev/ptmx
clt      no  read     /dev/bpf0
clt      no  read     /dev/dtrace
clt      no  tty
# --- the work area
clt      yes read     {COPY}/src/value.py
clt      yes read     {COPY}
clt      yes create   {COPY}/build/new.o
clt      yes write    {COPY}/src/value.py
clt      yes unlink   {COPY}/src/value.py
clt      yes chmod    {COPY}/run.sh
clt      yes times    {COPY}/run.sh
clt      yes xattr    {COPY}/run.sh
clt      yes exec     {COPY}/run.sh
clt      yes load     {COPY}/build/ext.so
clt      yes exists   {COPY}/package.json
clt      yes resolve  {COPY}/src/value.py
clt      yes read     {HOME}/.cache/x
clt      yes create   {HOME}/.cache/x
clt      yes exec     {HOME}/.local/bin/tool
clt      yes load     {HOME}/.cache/ext.so
clt      yes exists   {HOME}/.cache
clt      yes resolve  {HOME}/.cache
clt      yes read     {TMPDIR}/go-build1/b001/x.test
clt      yes create   {TMPDIR}/go-build1/b001/x.test
clt      yes unlink   {TMPDIR}/go-build1/b001/x.test
clt      yes exec     {TMPDIR}/go-build1/b001/x.test
clt      yes load     {TMPDIR}/jit.dylib
clt      yes exists   {TMPDIR}/x
clt      yes resolve  {TMPDIR}/x
folders  yes create   {FOLDERS}/p/t/tmpabc
folders  yes resolve  {FOLDERS}/c/src
folders  no  read     /private/var/folders/zz/zyx0000gn/T/other
folders  no  list     /private/var/folders/zz/zyx0000gn/T
folders  no  create   /private/var/folders/zz/zyx0000gn/T/other
folders  no  read     /private/var/folders/zz/zyx0000gn/C/com.apple.metal
folders  no  read     {FOLDERS}/p
folders  yes meta     /Library
folders  yes exec     /opt/python/3.12/bin/python3
folders  no  read     /var/folders/zz/zyx0000gn/T/firsthand-7c/c/src
# --- set-id bits, anywhere
clt      no  setid    {COPY}/run.sh
clt      no  setid    {HOME}/x
clt      no  setid    {TMPDIR}/x
clt      no  setid    /bin/sh
# --- neighbours of the work area
clt      no  read     {STATE}/copy-2/src/value.py
clt      no  create   {STATE}/copy-2/src/value.py
clt      no  read     {STATE}/copy-33/src/value.py
clt      no  list     {STATE}
clt      no  create   {STATE}/new
clt      no  read     {STATE}/p/ff00ff00/h/.cache/x
clt      no  create   {STATE}/p/ab12cd34/other
clt      no  chmod    {STATE}
clt      no  read     /Users/ann/Library/Application Support/firsthand/ledger.db
clt      no  unlink   {STATE}/p
# --- the user's own things, by every spelling
clt      yes meta     /Users
clt      yes meta     /Users/ann
clt      no  list     /Users
clt      no  list     /Users/ann
clt      no  read     /Users/ann/.ssh/id_ed25519
clt      no  meta     /Users/ann/.ssh/id_ed25519
clt      no  exists   /Users/ann/.ssh
clt      no  read     /Users/ann/.aws/credentials
clt      no  read     /Users/ann/.netrc
clt      no  read     /Users/ann/Library/Keychains/login.keychain-db
clt      no  read     /Users/ann/Library/Application Support/Claude/config.json
clt      no  read     /Users/ann/work/project/src/value.py
clt      no  create   /Users/ann/work/project/src/value.py
clt      no  exec     /Users/ann/work/project/run.sh
clt      no  exec     /Users/ann/bin/tool
clt      no  load     /Users/ann/lib/evil.dylib
clt      no  read     /System/Volumes/Data/Users/ann/.netrc
clt      no  read     /System/Volumes/Data{COPY}/src/value.py
clt      no  read     /users/ann/.netrc
clt      no  read     /Volumes/Backup/x
clt      no  list     /Volumes
clt      no  read     /Users/bea/notes
clt      no  read     /.vol/16777220/2
# --- the system's own things
clt      no  read     /private/etc/passwd
clt      no  read     /private/etc/master.passwd
clt      no  read     /private/etc/hosts
clt      no  list     /private/etc
clt      no  list     /private/var
clt      no  list     /usr
clt      no  list     /System
clt      no  list     /Library
clt      no  list     /dev
clt      no  list     /private
clt      no  read     /private/var/select/developer_dir
clt      no  read     /private/var/log/system.log
clt      no  read     /private/var/db/dslocal/nodes/Default/users/ann.plist
clt      no  read     /private/tmp/other
clt      no  create   /private/tmp/x
clt      no  create   /tmp/x
clt      no  create   /usr/lib/x
clt      no  create   /bin/x
clt      no  write    /bin/sh
clt      no  write    /dev/fdisk
clt      no  create   /System/Library/x
clt      no  create   /Library/LaunchAgents/x.plist
clt      no  create   /Users/ann/Library/LaunchAgents/x.plist
clt      no  read     /Library/Preferences/com.apple.networkd.plist
clt      no  exec     /sbin/mount
clt      no  exec     /usr/sbin/screencapture
clt      no  exec     /usr/local/bin/tool
clt      no  exec     /opt/homebrew/bin/tool
clt      no  exec     /usr/libexec/xpcproxy
clt      no  exec     /Applications/Safari.app/Contents/MacOS/Safari
clt      no  load     /usr/local/lib/libevil.dylib
clt      no  load     /private/tmp/evil.dylib
clt      no  map      /private/etc/localtime
clt      no  map      /Users/ann/lib/evil.dylib
clt      no  read     /Applications/Xcode.app/Contents/Info.plist
# --- other processes
clt      no  args     others
clt      no  args     same-sandbox
clt      yes args     self
clt      no  sysctl   kern.procargs2.4711
clt      no  sysctl   kern.procargs.4711
clt      no  sysctl   kern.proc.all
clt      no  sysctl   kern.proc.pid.4711
clt      no  pidinfo  others
clt      no  pidinfo  same-sandbox
clt      no  control  others
clt      no  fdinfo   others
clt      no  listpids others
clt      no  rusage   others
clt      no  codesign others
clt      no  signal   others
clt      no  taskport others
clt      no  taskname others
# --- network, in every form
clt      no  connect  tcp:127.0.0.1:8080
clt      no  connect  udp:8.8.8.8:53
clt      no  connect  /private/var/run/mDNSResponder
clt      no  connect  /Users/ann/.docker/run/docker.sock
clt      no  connect  {TMPDIR}/own.sock
clt      no  bind     tcp:127.0.0.1:0
clt      no  accept   tcp:127.0.0.1:8080
clt      no  socket   AF_SYSTEM
# --- services of the system
clt      no  lookup   com.apple.SecurityServer
clt      no  lookup   com.apple.coreservices.launchservicesd
clt      no  lookup   com.apple.cfprefsd.daemon
clt      no  lookup   com.apple.logd
clt      no  lookup   com.apple.pasteboard.1
clt      no  lookup   com.apple.system.opendirectoryd.libinfo
clt      no  register com.example.evil
clt      no  userport com.apple.x
clt      no  hostport host
clt      no  open-app x
clt      no  event    x
clt      no  job      x
clt      no  prefs    com.apple.x
clt      no  notify   x
clt      no  iokit    AppleKeyStore
clt      no  ioprop   IOPlatformSerialNumber
clt      no  nvram    boot-args
clt      no  setnvram boot-args
clt      no  setctl   kern.hostname
clt      no  shm      /x
clt      no  sem      /other
clt      yes sem      /mp-4f2a
clt      no  ioctl    /dev/null
# --- Homebrew on Apple silicon: node
brew-arm yes exec     /opt/homebrew/Cellar/node/24.1.0/bin/node
brew-arm yes read     /opt/homebrew/Cellar/node/24.1.0/lib/node_modules/npm/package.json
brew-arm yes load     /opt/homebrew/Cellar/node/24.1.0/lib/libnode.131.dylib
brew-arm yes exists   /opt/homebrew/Cellar/node/24.1.0/bin
brew-arm yes load     /opt/homebrew/Cellar/icu4c@77/77.1/lib/libicui18n.77.dylib
brew-arm yes exec     /opt/homebrew/Cellar/icu4c@77/77.1/bin/genrb
brew-arm yes meta     /opt/homebrew/opt/icu4c@77
brew-arm yes meta     /opt/homebrew/bin/node
brew-arm yes resolve  /opt/homebrew/bin/node
brew-arm yes resolve  /opt/homebrew/Cellar/node/24.1.0/bin/node
brew-arm yes exec     /Library/Frameworks/Python.framework/Versions/3.12/bin/python3.12
brew-arm yes load     /Library/Frameworks/Python.framework/Versions/3.12/Python
brew-arm no  read     /opt/homebrew/bin/node
brew-arm no  list     /opt/homebrew/bin
brew-arm no  list     /opt/homebrew/Cellar
brew-arm no  read     /opt/homebrew/Cellar/node/24.1.1/bin/node
brew-arm no  read     /opt/homebrew/Cellar/openssl@3/3.4.0/lib/libssl.3.dylib
brew-arm no  read     /opt/homebrew/etc/openssl@3/openssl.cnf
brew-arm no  create   /opt/homebrew/Cellar/node/24.1.0/lib/x
brew-arm no  write    /opt/homebrew/Cellar/node/24.1.0/bin/node
brew-arm no  setid    /opt/homebrew/Cellar/node/24.1.0/bin/node
# --- Homebrew on Intel: python
brew-intel yes exec    /usr/local/Cellar/python@3.13/3.13.2/Frameworks/Python.framework/Versions/3.13/bin/python3.13
brew-intel yes read    /usr/local/Cellar/python@3.13/3.13.2/Frameworks/Python.framework/Versions/3.13/lib/os.py
brew-intel yes load    /usr/local/Cellar/python@3.13/3.13.2/Frameworks/Python.framework/Versions/3.13/Python
brew-intel yes meta    /usr/local/opt/python@3.13
brew-intel yes resolve /usr/local/bin/python3.13
brew-intel no  read    /usr/local/Cellar/python@3.13/3.13.2/bin/pip3
brew-intel no  read    /usr/local/var/mysql/data
brew-intel no  read    /usr/local/etc/my.cnf
brew-intel no  list    /usr/local
brew-intel no  create  /usr/local/bin/x
# --- pyenv, nvm
pyenv    yes exec     /Users/ann/.pyenv/versions/3.12.4/bin/python3.12
pyenv    yes load     /Users/ann/.pyenv/versions/3.12.4/lib/python3.12/lib-dynload/_ssl.so
pyenv    yes meta     /Users/ann/.pyenv/versions/3.12
pyenv    yes resolve  /Users/ann/.pyenv/versions/3.12.4/bin/python3.12
pyenv    no  read     /Users/ann/.pyenv/versions/3.11.9/bin/python3.11
pyenv    no  read     /Users/ann/.pyenv/version
pyenv    no  list     /Users/ann/.pyenv/versions
pyenv    no  exec     /Users/ann/.pyenv/shims/python
pyenv    no  create   /Users/ann/.pyenv/versions/3.12.4/lib/python3.12/site-packages/x.pth
nvm      yes exec     /Users/ann/.nvm/versions/node/v22.11.0/bin/node
nvm      yes read     /Users/ann/.nvm/versions/node/v22.11.0/lib/node_modules/npm/index.js
nvm      no  read     /Users/ann/.nvm/versions/node/v22.11.0-rc/bin/node
nvm      no  read     /Users/ann/.nvm/nvm.sh
nvm      no  read     /Users/ann/.npmrc
nvm      no  create   /Users/ann/.npm/_cacache/x
# --- go, cargo
go       yes exec     /opt/homebrew/Cellar/go/1.24.0/libexec/bin/go
go       yes exec     /opt/homebrew/Cellar/go/1.24.0/libexec/pkg/tool/darwin_arm64/compile
go       yes read     /opt/homebrew/Cellar/go/1.24.0/libexec/src/fmt/print.go
go       yes create   {HOME}/Library/Caches/go-build/00/x
go       yes exec     {TMPDIR}/go-build2/b001/value.test
go       no  read     /Users/ann/go/pkg/mod/cache/x
go       no  create   /Users/ann/Library/Caches/go-build/00/x
rustup   yes exec     /Users/ann/.rustup/toolchains/stable-aarch64-apple-darwin/bin/cargo
rustup   yes load     /Users/ann/.rustup/toolchains/stable-aarch64-apple-darwin/lib/librustc_driver.dylib
rustup   yes exec     /Library/Developer/CommandLineTools/usr/bin/ld
rustup   yes exec     {COPY}/target/debug/deps/value-0123
rustup   no  read     /Users/ann/.cargo/credentials.toml
rustup   no  exec     /Users/ann/.cargo/bin/cargo
rustup   no  read     /Users/ann/.rustup/settings.toml
# --- command line tools
clt      yes exec     /Library/Developer/CommandLineTools/usr/bin/clang
clt      yes load     /Library/Developer/CommandLineTools/usr/lib/libclang.dylib
clt      yes read     /Library/Developer/CommandLineTools/SDKs/MacOSX.sdk/usr/include/stdio.h
clt      yes meta     /Library/Developer
clt      no  list     /Library/Developer
clt      no  create   /Library/Developer/CommandLineTools/x
clt      no  read     /Library/Developer/Xcode/x
clt      no  read     /Library/Application Support/com.apple.TCC/TCC.db
"""

_PATH_VERBS = {
    "read": ("file-read-data",),
    "list": ("file-read-data",),
    "meta": ("file-read-metadata",),
    "exists": ("file-test-existence",),
    "write": ("file-write-data",),
    "create": ("file-write-create",),
    "unlink": ("file-write-unlink",),
    "chmod": ("file-write-mode",),
    "times": ("file-write-times",),
    "xattr": ("file-write-xattr",),
    "setid": ("file-write-setugid",),
    "ioctl": ("file-ioctl",),
    "exec": ("process-exec",),
    "map": ("file-map-executable",),
    "load": ("file-read-data", "file-map-executable"),
}
_TARGET_VERBS = {
    "pidinfo": "process-info-pidinfo",
    "control": "process-info-setcontrol",
    "fdinfo": "process-info-pidfdinfo",
    "listpids": "process-info-listpids",
    "rusage": "process-info-rusage",
    "codesign": "process-info-codesignature",
    "signal": "signal",
    "taskport": "mach-priv-task-port",
    "taskname": "mach-task-name",
}
_NAME_VERBS = {
    "sysctl": "sysctl-read",
    "setctl": "sysctl-write",
    "connect": "network-outbound",
    "bind": "network-bind",
    "accept": "network-inbound",
    "socket": "system-socket",
    "lookup": "mach-lookup",
    "register": "mach-register",
    "userport": "mach-per-user-lookup",
    "hostport": "mach-priv-host-port",
    "open-app": "lsopen",
    "event": "appleevent-send",
    "job": "job-creation",
    "prefs": "user-preference-read",
    "notify": "distributed-notification-post",
    "iokit": "iokit-open",
    "ioprop": "iokit-get-properties",
    "nvram": "nvram-get",
    "setnvram": "nvram-set",
    "shm": "ipc-posix-shm-read-data",
    "sem": "ipc-posix-sem",
    "tty": "pseudo-tty",
    "fork": "process-fork",
}


@dataclass(frozen=True)
class Question:
    layout: str
    allowed: bool
    verb: str
    subject: str

    def __str__(self) -> str:
        return f"{self.layout}: {self.verb} {self.subject}"


def questions() -> list[Question]:
    found = []
    for line in TABLE.strip().splitlines():
        if line.startswith("#"):
            continue
        layout, answer, verb, *subject = line.split(maxsplit=3)
        text = subject[0] if subject else ""
        for name, value in (("COPY", COPY), ("HOME", HOME), ("TMPDIR", TMPDIR), ("STATE", STATE), ("FOLDERS", FOLDERS)):
            text = text.replace(f"{{{name}}}", value)
        found.append(Question(layout, {"yes": True, "no": False}[answer], verb, text))
    return found


def ask(oracle: Oracle, question: Question) -> bool:
    """The profile's answer. Some questions are several operations, all of which must be allowed."""
    verb, subject = question.verb, question.subject
    if verb in _PATH_VERBS:
        return all(oracle.allows(operation, Subject(path=subject)) for operation in _PATH_VERBS[verb])
    if verb == "resolve":
        steps = (*ancestors(subject), subject)
        return all(oracle.allows("file-read-metadata", Subject(path=step)) for step in steps)
    if verb == "args":
        # The kernel lets a read of a process's arguments pass where either of the two allows it.
        by_sysctl = oracle.allows("sysctl-read", Subject(name="kern.procargs2.4711"))
        return by_sysctl or oracle.allows("process-info-pidinfo", Subject(target=subject))
    if verb in _TARGET_VERBS:
        return oracle.allows(_TARGET_VERBS[verb], Subject(target=subject))
    path = subject if subject.startswith("/") else ""
    return oracle.allows(_NAME_VERBS[verb], Subject(name=subject, path=path))
