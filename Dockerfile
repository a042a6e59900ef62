# The netprobe image. Three uses:
#   docker build -t netprobe .
#   docker run --rm -v "$PWD:/work" -w /work netprobe netprobe plan --matrix deckhouse-nodes
#   vantage: {command: [podman, run, --rm, -i, --network=host, --pid=host, --cap-add, NET_RAW, netprobe]}
#       in an inventory, for a host that has containers but no Python (docs/compose.md)
# It has no entrypoint on purpose: a vantage runs `IMAGE sh -c '...'`.

FROM python:3.12-slim AS build
WORKDIR /src
# Every package of the lock, checked against its hash; only what netprobe itself needs leaves this stage. Some that
# only tests need have no wheel.
COPY requirements.lock .
RUN pip download --quiet --disable-pip-version-check --no-cache-dir --require-hashes --no-deps \
        --prefer-binary --dest /wheels -r requirements.lock
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY matrices matrices
COPY netprobe netprobe
RUN pip wheel --quiet --disable-pip-version-check --no-index --find-links /wheels --no-deps --wheel-dir /own . \
    && pip install --quiet --disable-pip-version-check --no-index --find-links /wheels --no-compile \
        --prefix /install --root-user-action ignore /own/*.whl \
    && rm -rf /install/share

FROM python:3.12-slim
# A non-root user, and a Python that may open raw sockets and low ports. File capabilities make exec fail where the
# container was started without them (podman gives no NET_RAW unless asked). So only the copy
# named python3 has them: netprobe's agent then goes on to python3.12, and reports what that costs.
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends openssh-client libcap2-bin >/dev/null \
    && real=$(readlink -f "$(command -v python3)") && folder=$(dirname "$real") \
    && rm -f "$folder/python3" && cp "$real" "$folder/python3" \
    && setcap cap_net_raw,cap_net_bind_service=ep "$folder/python3" \
    && apt-get purge -y -qq libcap2-bin >/dev/null \
    && apt-get clean && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 netprobe \
    # Volumes of the lab take owner and mode from the image's folder.
    && install -d -m 1777 /lab /lab/authorized /lab/known
COPY --from=build /install /usr/local
# The user cannot write bytecode, so it is made here.
RUN python3.12 -m compileall -q -x '/pip/' /usr/local/lib/python3.12/site-packages \
    && netprobe --version
USER netprobe
WORKDIR /home/netprobe
CMD ["netprobe", "--help"]
