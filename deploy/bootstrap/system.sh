#!/bin/sh
# Installs the Debian packages of ../debian-packages.txt that are missing, and nothing else.
#
# Needs apt and root (or sudo without a password). Otherwise it prints the command to run and continues with the
# installed packages; a program that needs a missing package reports it. No service is started: some packages
# (prometheus, prometheus-alertmanager) contain a service, which is blocked while apt runs and left disabled.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
list=$here/../debian-packages.txt
policy=/usr/sbin/policy-rc.d

say() { printf 'bootstrap: %s\n' "$*"; }

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# The first name of each line of the list for which no alternative is installed.
missing_packages() {
    sed -e 's/#.*//' -e '/^[[:space:]]*$/d' -e 's/|/ /g' "$list" | while read -r names; do
        found=no
        for name in $names; do
            if installed "$name"; then found=yes; fi
        done
        if [ "$found" = no ]; then printf '%s ' "${names%% *}"; fi
    done
}

if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
    say "not a Debian system: install what $list names by hand; going on with what is here"
    exit 0
fi

missing=$(missing_packages)
missing=${missing% }
if [ -z "$missing" ]; then
    exit 0
fi

if [ "$(id -u)" = 0 ]; then
    root=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    root='sudo -n'
else
    say "missing Debian packages, and no permission to install them. As root, run:"
    say "    apt-get update && apt-get install --no-install-recommends $missing"
    say "going on with what is here"
    exit 0
fi

say "installing Debian packages: $missing"
services=
for name in prometheus prometheus-alertmanager; do
    if ! installed "$name"; then services="$services $name"; fi
done

made_policy=no
if [ ! -e "$policy" ]; then
    made_policy=yes
    trap '$root rm -f "$policy"' EXIT
    trap 'exit 130' INT TERM
    printf '#!/bin/sh\n# No service is started while Heliograph installs its packages.\nexit 101\n' |
        $root tee "$policy" >/dev/null
    $root chmod 755 "$policy"
fi

# shellcheck disable=SC2086  # words on purpose
if ! { $root apt-get -qq update &&
    $root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Dpkg::Use-Pty=0 \
        install --no-install-recommends $missing >/dev/null; }; then
    say "apt could not install: $missing"
    say "going on with what is here; what needs a missing package will say so"
fi

for name in $services; do
    if installed "$name" && command -v systemctl >/dev/null 2>&1; then
        $root systemctl --quiet disable "$name.service" 2>/dev/null || true
        say "Debian's $name service is installed but neither started nor enabled"
    fi
done
if [ "$made_policy" = yes ]; then $root rm -f "$policy"; fi
