# Trainer service, inference engine, and the routes in front of vLLM: one image, three commands.
# TORCH_INDEX names a package index to take torch from: PyTorch's index of CPU wheels, or of one CUDA version. Left empty, the
# ordinary index is used, whose build for Linux carries CUDA (several gigabytes) and runs on CPU too.
ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS packages
ARG TORCH_INDEX=""
WORKDIR /src
COPY pyproject.toml infra/docker/requirements.py ./
RUN python3 -m venv /opt/rootstock \
 && /opt/rootstock/bin/python requirements.py pyproject.toml trainer --torch > torch.txt \
 && /opt/rootstock/bin/python requirements.py pyproject.toml trainer > requirements.txt \
 && /opt/rootstock/bin/pip install --no-cache-dir --disable-pip-version-check ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} --requirement torch.txt \
 && /opt/rootstock/bin/pip install --no-cache-dir --disable-pip-version-check --requirement requirements.txt

FROM ${BASE} AS model
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin rootstock \
 && install -d -o rootstock -g rootstock /var/lib/rootstock /var/lib/rootstock/artifacts
ENV PATH=/opt/rootstock/bin:$PATH \
    PYTHONPATH=/app \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HF_HUB_OFFLINE=1 \
    TOKENIZERS_PARALLELISM=false
COPY --from=packages /opt/rootstock /opt/rootstock
WORKDIR /app
COPY trainer trainer
USER 10001:10001
EXPOSE 8100 8200
CMD ["python", "-m", "trainer.inference", "--help"]
