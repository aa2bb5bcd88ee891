from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa, x25519

from firsthand.evidence.errors import KeyFileError
from firsthand.evidence.keyfiles import (
    load_public_key,
    load_signing_key,
    new_key,
    show_key,
    trust_key,
    trusted_keys,
)
from firsthand.evidence.keys import parse_public_key, parse_signing_key

PKCS8 = serialization.PrivateFormat.PKCS8
PEM = serialization.Encoding.PEM
SPKI = serialization.PublicFormat.SubjectPublicKeyInfo


def private_pem(key: object, encryption: object = None, form: object = PKCS8) -> bytes:
    return key.private_bytes(PEM, form, encryption or serialization.NoEncryption())  # type: ignore[attr-defined,no-any-return]


def public_pem(key: object) -> bytes:
    return key.public_key().public_bytes(PEM, SPKI)  # type: ignore[attr-defined,no-any-return]


def write(path: Path, content: bytes, mode: int = 0o600) -> Path:
    path.write_bytes(content)
    path.chmod(mode)
    return path


class TestNew:
    def test_the_file_is_private_whatever_the_umask(self, tmp_path: Path) -> None:
        for umask in (0o000, 0o022, 0o777):
            before = os.umask(umask)
            try:
                new_key(tmp_path / f"{umask}.pem")
            finally:
                os.umask(before)
            assert (tmp_path / f"{umask}.pem").stat().st_mode & 0o7777 == 0o600

    def test_it_loads_again_as_the_same_key(self, tmp_path: Path) -> None:
        made = new_key(tmp_path / "key.pem")
        assert load_signing_key(tmp_path / "key.pem").public == made
        assert show_key(tmp_path / "key.pem") == made

    def test_two_keys_differ(self, tmp_path: Path) -> None:
        assert new_key(tmp_path / "one.pem").key_id != new_key(tmp_path / "two.pem").key_id

    def test_an_existing_file_stays(self, tmp_path: Path) -> None:
        write(tmp_path / "key.pem", b"precious")
        with pytest.raises(KeyFileError, match="never written over"):
            new_key(tmp_path / "key.pem")
        assert (tmp_path / "key.pem").read_bytes() == b"precious"

    def test_a_dangling_link_is_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / "key.pem").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(KeyFileError, match="never written over"):
            new_key(tmp_path / "key.pem")
        assert not (tmp_path / "elsewhere").exists()

    def test_a_missing_folder_is_told(self, tmp_path: Path) -> None:
        with pytest.raises(KeyFileError, match="No such file") as caught:
            new_key(tmp_path / "absent" / "key.pem")
        assert caught.value.code == "key_invalid"
        assert caught.value.where == str(tmp_path / "absent" / "key.pem")

    def test_inside_the_source_is_refused(self, tmp_path: Path) -> None:
        source = tmp_path / "source"
        source.mkdir()
        (tmp_path / "alias").symlink_to(source)
        for place in (source / "key.pem", tmp_path / "alias" / "key.pem"):
            with pytest.raises(KeyFileError, match="inside the tree under verification"):
                new_key(place, source=source)
        assert list(source.iterdir()) == []


class TestPrivateFile:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        new_key(tmp_path / "key.pem")
        return tmp_path / "key.pem"

    def test_read_only_is_accepted(self, path: Path) -> None:
        path.chmod(0o400)
        load_signing_key(path)

    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o700, 0o666, 0o4600])
    def test_a_wider_mode_is_refused(self, path: Path, mode: int) -> None:
        path.chmod(mode)
        with pytest.raises(KeyFileError, match="wider than 0600"):
            load_signing_key(path)

    def test_a_symbolic_link_is_refused(self, path: Path, tmp_path: Path) -> None:
        link = tmp_path / "link.pem"
        link.symlink_to(path)
        with pytest.raises(KeyFileError, match="symbolic link"):
            load_signing_key(link)

    def test_a_hard_link_is_refused(self, path: Path, tmp_path: Path) -> None:
        os.link(path, tmp_path / "second.pem")
        with pytest.raises(KeyFileError, match="2 names"):
            load_signing_key(path)

    def test_a_fifo_is_refused_without_waiting(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "fifo", 0o600)
        with pytest.raises(KeyFileError, match="not a regular file"):
            load_signing_key(tmp_path / "fifo")

    def test_a_folder_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(KeyFileError, match="not a regular file"):
            load_signing_key(tmp_path)

    @pytest.mark.skipif(os.geteuid() != 0, reason="giving a file away needs root")
    def test_another_owner_is_refused(self, path: Path) -> None:
        os.chown(path, 12345, -1)
        with pytest.raises(KeyFileError, match="owned by user 12345"):
            load_signing_key(path)

    def test_inside_the_source_is_refused(self, path: Path, tmp_path: Path) -> None:
        with pytest.raises(KeyFileError, match="inside the tree"):
            load_signing_key(path, source=tmp_path)

    def test_a_large_file_is_refused(self, path: Path) -> None:
        path.write_bytes(path.read_bytes() + b"\n" * 20_000)
        with pytest.raises(KeyFileError, match="longer than 16384 bytes"):
            load_signing_key(path)

    def test_absence_is_told(self, tmp_path: Path) -> None:
        with pytest.raises(KeyFileError, match="No such file"):
            load_signing_key(tmp_path / "absent.pem")

    def test_the_secret_is_not_in_its_repr(self, path: Path) -> None:
        shown = repr(load_signing_key(path))
        assert "PRIVATE" not in shown
        assert "_key" not in shown


class TestPrivateContent:
    def test_other_types_are_refused_by_name(self) -> None:
        keys = {
            "RSA": rsa.generate_private_key(65537, 2048),
            "EC": ec.generate_private_key(ec.SECP256R1()),
            "X25519": x25519.X25519PrivateKey.generate(),
            "Ed448": ed448.Ed448PrivateKey.generate(),
        }
        for name, key in keys.items():
            with pytest.raises(KeyFileError, match=f"type {name}.*only Ed25519"):
                parse_signing_key(private_pem(key), "key.pem")

    def test_other_forms_are_refused(self) -> None:
        key = ed25519.Ed25519PrivateKey.generate()
        good = private_pem(key)
        forms = [
            b"",
            b"garbage",
            public_pem(key),
            private_pem(key, serialization.BestAvailableEncryption(b"secret")),
            private_pem(key, form=serialization.PrivateFormat.OpenSSH),
            private_pem(rsa.generate_private_key(65537, 2048), form=serialization.PrivateFormat.TraditionalOpenSSL),
            good + good,
            good + b"trailing",
            b"leading\n" + good,
            good.replace(b"MC4C", b"AAAA"),
            good.replace(b"\n", b"\r\n"),
        ]
        for form in forms:
            with pytest.raises(KeyFileError, match="not exactly one Ed25519 private key"):
                parse_signing_key(form, "key.pem")
        parse_signing_key(good, "key.pem")


class TestPublicContent:
    def test_a_private_key_is_refused_as_such(self) -> None:
        with pytest.raises(KeyFileError, match="this is a private key"):
            parse_public_key(private_pem(ed25519.Ed25519PrivateKey.generate()), "key.pem")

    def test_other_types_are_refused_by_name(self) -> None:
        keys = {
            "RSA": rsa.generate_private_key(65537, 2048),
            "EC": ec.generate_private_key(ec.SECP256R1()),
            "X25519": x25519.X25519PrivateKey.generate(),
            "Ed448": ed448.Ed448PrivateKey.generate(),
        }
        for name, key in keys.items():
            with pytest.raises(KeyFileError, match=f"type {name}.*only Ed25519"):
                parse_public_key(public_pem(key), "key.pem")

    def test_other_forms_are_refused(self) -> None:
        good = public_pem(ed25519.Ed25519PrivateKey.generate())
        for form in (b"", b"garbage", good + good, good + b"x", b"x" + good, good.replace(b"MCow", b"AAAA")):
            with pytest.raises(KeyFileError, match="not exactly one Ed25519 public key"):
                parse_public_key(form, "key.pem")

    def test_keys_of_small_order_are_refused(self) -> None:
        prime = 2**255 - 19
        eight = int.from_bytes(
            bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"
        )
        points = [0, 1, prime - 1, eight, prime - eight, prime, prime + 1]
        for point in points:
            for sign in (0, 1 << 255):
                raw = (point | sign).to_bytes(32, "little")
                pem = ed25519.Ed25519PublicKey.from_public_bytes(raw).public_bytes(PEM, SPKI)
                with pytest.raises(KeyFileError, match="small order"):
                    parse_public_key(pem, "key.pem")

    def test_the_id_is_the_digest_of_the_der_form(self) -> None:
        key = ed25519.Ed25519PrivateKey.generate()
        der = key.public_key().public_bytes(serialization.Encoding.DER, SPKI)
        assert parse_public_key(public_pem(key), "key.pem").key_id == hashlib.sha256(der).hexdigest()


class TestPublicFile:
    def test_a_link_is_followed(self, tmp_path: Path) -> None:
        key = new_key(tmp_path / "key.pem")
        write(tmp_path / "pub.pem", key.pem.encode(), 0o644)
        (tmp_path / "link.pem").symlink_to(tmp_path / "pub.pem")
        assert load_public_key(tmp_path / "link.pem") == key
        assert show_key(tmp_path / "link.pem") == key

    def test_absence_loops_and_folders_are_told(self, tmp_path: Path) -> None:
        (tmp_path / "loop").symlink_to(tmp_path / "loop")
        for name in ("absent", "loop", "."):
            for read in (load_public_key, show_key):
                with pytest.raises(KeyFileError):
                    read(tmp_path / name)


class TestTrust:
    def test_an_absent_folder_trusts_nobody(self, tmp_path: Path) -> None:
        assert trusted_keys(tmp_path / "trusted") == ()

    def test_keys_are_kept_under_their_ids(self, tmp_path: Path) -> None:
        keys = sorted((new_key(tmp_path / f"{n}.pem") for n in range(3)), key=lambda key: key.key_id)
        for key in keys:
            path = trust_key(tmp_path / "state" / "trusted", key)
            assert path.name == f"{key.key_id}.pem"
            assert path.stat().st_mode & 0o777 == 0o600
            assert trust_key(tmp_path / "state" / "trusted", key) == path
        assert (tmp_path / "state" / "trusted").stat().st_mode & 0o777 == 0o700
        assert trusted_keys(tmp_path / "state" / "trusted") == tuple(keys)

    def test_a_key_under_another_id_is_refused(self, tmp_path: Path) -> None:
        one, two = new_key(tmp_path / "one.pem"), new_key(tmp_path / "two.pem")
        path = trust_key(tmp_path / "trusted", one)
        path.write_text(two.pem)
        with pytest.raises(KeyFileError, match="file's name says otherwise"):
            trusted_keys(tmp_path / "trusted")
        with pytest.raises(KeyFileError, match="file's name says otherwise"):
            trust_key(tmp_path / "trusted", one)

    def test_strange_content_is_refused(self, tmp_path: Path) -> None:
        trust_key(tmp_path / "trusted", new_key(tmp_path / "one.pem"))
        stranger = tmp_path / "trusted" / "README"
        stranger.write_text("hello")
        with pytest.raises(KeyFileError, match="not exactly one"):
            trusted_keys(tmp_path / "trusted")
        stranger.unlink()
        stranger.symlink_to(tmp_path / "one.pem")
        with pytest.raises(KeyFileError, match="symbolic link"):
            trusted_keys(tmp_path / "trusted")

    @pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
    def test_a_folder_that_others_can_write_is_refused(self, tmp_path: Path, mode: int) -> None:
        key = new_key(tmp_path / "one.pem")
        trust_key(tmp_path / "trusted", key)
        (tmp_path / "trusted").chmod(mode)
        with pytest.raises(KeyFileError, match="others may write"):
            trusted_keys(tmp_path / "trusted")
        with pytest.raises(KeyFileError, match="others may write"):
            trust_key(tmp_path / "trusted", key)

    def test_a_linked_folder_and_a_file_are_refused(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir(mode=0o700)
        (tmp_path / "trusted").symlink_to(tmp_path / "real")
        with pytest.raises(KeyFileError, match="not a folder"):
            trusted_keys(tmp_path / "trusted")
        write(tmp_path / "file", b"")
        with pytest.raises(KeyFileError, match="not a folder"):
            trusted_keys(tmp_path / "file")

    @pytest.mark.skipif(os.geteuid() != 0, reason="giving a folder away needs root")
    def test_another_owner_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "trusted").mkdir(mode=0o700)
        os.chown(tmp_path / "trusted", 12345, -1)
        with pytest.raises(KeyFileError, match="owned by user 12345"):
            trusted_keys(tmp_path / "trusted")


def test_importing_the_room_imports_no_crypto() -> None:
    program = "import sys, firsthand.evidence; print([m for m in sys.modules if 'cryptography' in m])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
