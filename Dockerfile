# One image for web, worker and one-off commands; docker-compose.yml says which it is.

# What is installed: the locked set, every file checked by its hash.
FROM python:3.13.14-slim AS packages
WORKDIR /build
COPY requirements requirements
RUN python -m venv /opt/venv \
    && PIP_NO_CACHE_DIR=1 UV_NO_CACHE=1 PYTHONDONTWRITEBYTECODE=1 \
       requirements/install /opt/venv requirements/runtime.txt

# Style sheets and scripts under names that change with them. Settings want a database and a key;
# collecting uses neither, and nothing of this stage but the files goes on.
FROM python:3.13.14-slim AS collected
ENV PATH=/opt/venv/bin:$PATH VAR_DIR=/tmp/var STATIC_ROOT=/collected
WORKDIR /build
COPY --from=packages /opt/venv /opt/venv
COPY . .
RUN DATABASE_URL=postgresql://build@127.0.0.1/build SECRET_KEY=$(head -c 48 /dev/urandom | base64) \
    python manage.py collectstatic --no-input --verbosity 0 && chmod -R a+rX /collected

FROM python:3.13.14-slim
# pg_dump and pg_restore, for `manage.py backup` and `restore`.
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends postgresql-client-17 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /srv/blindspot --shell /usr/sbin/nologin blindspot
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    VAR_DIR=/srv/blindspot/var STATIC_ROOT=/srv/blindspot/collected
WORKDIR /srv/blindspot
COPY --from=packages /opt/venv /opt/venv
COPY --from=collected /collected collected
COPY . .
# All that the service writes; a new volume there belongs to its user as this folder does.
RUN install --directory --owner blindspot var
USER blindspot
EXPOSE 8000
CMD ["gunicorn", "config.wsgi", "--bind", "0.0.0.0:8000", "--workers", "2", "--threads", "8", "--reuse-port"]
