# The quickstart in a container: simulated debates, then agents on the embedded model.
#
#     docker build -t madplug .
#     docker run --rm madplug                          the quickstart
#     mkdir -p runs; docker run --rm -v "$PWD/runs:/work/runs" madplug run examples/compare.toml
FROM python:3.12-slim

# The engine of the embedded model computes with OpenMP. Its version is the base image's, which gets its fixes.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home --uid 1000 madplug && mkdir /work && chown madplug /work
WORKDIR /source
COPY . .
RUN pip install --no-cache-dir -r requirements-standard.txt \
    && pip install --no-cache-dir "./plugins/madplug-llamacpp[qwen-0-5b]"
USER 1000
WORKDIR /work
COPY --chown=1000 examples examples
ENTRYPOINT ["madplug"]
CMD ["run", "examples/quickstart.toml", "--watch"]
