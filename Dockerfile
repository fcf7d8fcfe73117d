# autosf with the live view, as an ordinary user, with the C compiler that its training kernel is made by.
#
#   docker build -t autosf .
#   docker run --rm autosf demo
#   docker run --rm -v "$PWD:/work" -v "$HOME/graphs:/data" autosf search my-graph --budget 2h --out run
#   docker run --rm -v "$PWD:/work" -p 8765:8765 autosf serve run --host 0.0.0.0 --port 8765
#
# Without a GPU, torch's CPU build makes the image several times smaller; its guide names the index to give:
#   docker build --build-arg TORCH_INDEX=... -t autosf .
ARG PYTHON=3.11
FROM python:${PYTHON}-slim AS wheel
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:${PYTHON}-slim
ARG TORCH_INDEX=""
ARG EXTRAS="web,rdf"
COPY requirements.lock /tmp/
RUN pip install --no-cache-dir ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} "$(grep '^torch==' /tmp/requirements.lock)"
COPY --from=wheel /wheels /tmp/wheels
RUN pip install --no-cache-dir -c /tmp/requirements.lock "$(ls /tmp/wheels/*.whl)[${EXTRAS}]"
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home --uid 1000 autosf && mkdir /work /data && chown autosf /work /data
USER autosf
ENV AUTOSF_DATA=/data
WORKDIR /work
ENTRYPOINT ["autosf"]
CMD ["--help"]
