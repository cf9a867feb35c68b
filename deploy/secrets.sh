#!/bin/sh
# Makes the passwords of docker-compose.yml in the folder `secrets`; keeps those that exist.
#
#   sh deploy/secrets.sh && docker compose up --build
#
# Only you can enter the folder. The files in it are readable, because the users of the containers
# are others.
set -eu
cd "$(dirname "$0")/.."
mkdir -p secrets
chmod 700 secrets

random() { head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n'; }
write() { [ -s "secrets/$1" ] || printf '%s' "$2" > "secrets/$1"; chmod 444 "secrets/$1"; }

write postgres_password "$(random)"
write valkey_password "$(random)"
write api_key "$(random)"
write keyword_key "$(random)"
write ledger_url "postgresql+psycopg://callslip:$(cat secrets/postgres_password)@postgres/callslip"
write broker_url "redis://:$(cat secrets/valkey_password)@valkey:6379/0"
echo "The key of the API: $(cat secrets/api_key)"
