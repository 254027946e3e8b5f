# One image for web, worker and one-off commands; docker-compose.yml says which it is.
FROM python:3.13-slim AS build
WORKDIR /srv/blindspot
COPY requirements requirements
RUN python -m venv /opt/venv \
    && apt-get update -qq && apt-get install -y -qq --no-install-recommends bash grep sed \
    && PIP_NO_CACHE_DIR=1 UV_NO_CACHE=1 requirements/install /opt/venv requirements/runtime.txt

FROM python:3.13-slim
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    VAR_DIR=/srv/blindspot/var
RUN useradd --system --uid 10001 --home-dir /srv/blindspot blindspot
WORKDIR /srv/blindspot
COPY --from=build /opt/venv /opt/venv
COPY . .
# Settings want a database and a key; collecting files uses neither.
RUN install --directory --owner blindspot var var/archives \
    && DATABASE_URL=postgresql://build@127.0.0.1/build SECRET_KEY=$(head -c 48 /dev/urandom | base64) \
       python manage.py collectstatic --no-input --verbosity 0
USER blindspot
EXPOSE 8000
CMD ["gunicorn", "config.wsgi", "--bind", "0.0.0.0:8000", "--workers", "2", "--threads", "8", "--reuse-port"]
