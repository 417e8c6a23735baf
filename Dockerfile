# The quickstart in a container: simulated debates, then agents on the embedded model.
#
#     docker build -t madplug .
#     docker run --rm madplug                                            the quickstart
#     docker run --rm -v "$PWD/runs:/work/runs" madplug run examples/compare.toml
FROM python:3.12-slim

# The engine of the embedded model computes with OpenMP.
RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home --uid 1000 madplug && mkdir /work && chown madplug /work
COPY . /source
RUN cd /source && pip install --no-cache-dir -r requirements-standard.txt "./plugins/madplug-llamacpp[qwen-0-5b]"
USER madplug
WORKDIR /work
RUN cp -r /source/examples examples
ENTRYPOINT ["madplug"]
CMD ["run", "examples/quickstart.toml", "--watch"]
