#!/usr/bin/env bash
# Creates the secrets of the compose file in the folder secrets beside it. Run it once, as root: each file is given to the
# account that reads it in its container. Files that exist are kept, so that it can run again.
set -euo pipefail
umask 077
cd "$(dirname "$0")"
mkdir -p secrets/cluster

# The accounts in the images.
readonly TURNSTONE=10001 POSTGRES=999 REDIS=999 PROXY=99 GRAFANA=472 ROOT=0

# store NAME ACCOUNT: writes what it reads into a secret, unless that exists.
store() {
	if [[ -e secrets/$1 ]]; then
		cat >/dev/null
	else
		cat >"secrets/$1.new"
		chown "$2:$2" "secrets/$1.new"
		mv "secrets/$1.new" "secrets/$1"
	fi
}

openssl rand -hex 24 | store postgres-password "$ROOT"
openssl rand -hex 24 | store owner-password "$POSTGRES"
openssl rand -hex 24 | store login-password "$POSTGRES"
echo "postgres://turnstone_owner:$(<secrets/owner-password)@postgres/turnstone?sslmode=disable" | store migrate-database-url "$TURNSTONE"
echo "postgres://turnstone:$(<secrets/login-password)@postgres/turnstone?sslmode=disable" | store database-url "$TURNSTONE"
openssl rand -base64 48 | store secret "$TURNSTONE"

openssl rand -hex 24 | store redis-password "$ROOT"
store redis.conf "$REDIS" <<-END
	requirepass $(<secrets/redis-password)
	save ""
	appendonly no
	maxmemory 256mb
	maxmemory-policy allkeys-lru
END
echo "redis://:$(<secrets/redis-password)@redis:6379" | store redis-url "$TURNSTONE"

openssl rand -hex 24 | store s3-secret "$ROOT"
store s3.env "$ROOT" <<-END
	ROOT_ACCESS_KEY=turnstone
	ROOT_SECRET_KEY=$(<secrets/s3-secret)
END
store aws-credentials "$TURNSTONE" <<-END
	[default]
	aws_access_key_id = turnstone
	aws_secret_access_key = $(<secrets/s3-secret)
END

openssl rand -hex 16 | store grafana-password "$GRAFANA"
# The certificates of the nodes are created in this folder by an account that may write here.
chown "$TURNSTONE:$TURNSTONE" secrets/cluster

# A certificate for a first try on this host computer. Replace secrets/turnstone.pem (chain, then key) by a real one.
if [[ ! -e secrets/turnstone.pem ]]; then
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 90 -subj /CN=localhost \
		-addext subjectAltName=DNS:localhost,DNS:usercontent.localhost -keyout secrets/try.key -out secrets/try.crt 2>/dev/null
	cat secrets/try.crt secrets/try.key | store turnstone.pem "$PROXY"
	rm secrets/try.crt secrets/try.key
fi
