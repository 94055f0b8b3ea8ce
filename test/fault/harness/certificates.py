"""Authorities and certificates for tests, made by openssl."""
import subprocess

NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]  # one of RSA takes long to find


def _openssl(directory, *words):
    subprocess.run(["openssl", *words], cwd=directory, check=True, capture_output=True)


def authority(directory, name):
    """name.pem and name.key: an authority that signs."""
    _openssl(
        directory,
        "req",
        "-x509",
        *NEW_KEY,
        "-nodes",
        "-days",
        "2",
        "-subj",
        f"/CN={name}",
        "-keyout",
        f"{name}.key",
        "-out",
        f"{name}.pem",
        "-addext",
        "basicConstraints=critical,CA:TRUE",
    )


def certificate(directory, name, signer, host="IP:127.0.0.1", end="21000101000000Z", rsa=False):
    """name.pem and name.key: a server's certificate for that host, valid until then. rsa: its key can encrypt."""
    with open(f"{directory}/{name}.cnf", "w", encoding="ascii") as f:
        f.write(
            f"[ca]\ndefault_ca = a\n[a]\ndatabase = {name}.index\nnew_certs_dir = .\nrand_serial = yes\ndefault_md"
            " = sha256\n"
            "policy = p\nx509_extensions = e\n[p]\ncommonName = supplied\n[e]\nbasicConstraints = CA:FALSE\n"
            f"subjectAltName = {host}\n"
        )
    open(f"{directory}/{name}.index", "w", encoding="ascii").close()  # pylint: disable=consider-using-with
    _openssl(
        directory,
        "req",
        *(["-newkey", "rsa:2048"] if rsa else NEW_KEY),
        "-nodes",
        "-subj",
        "/CN=server",
        "-keyout",
        f"{name}.key",
        "-out",
        f"{name}.csr",
    )
    _openssl(
        directory,
        "ca",
        "-batch",
        "-notext",
        "-config",
        f"{name}.cnf",
        "-cert",
        f"{signer}.pem",
        "-keyfile",
        f"{signer}.key",
        "-startdate",
        "20000101000000Z",
        "-enddate",
        end,
        "-in",
        f"{name}.csr",
        "-out",
        f"{name}.pem",
    )
