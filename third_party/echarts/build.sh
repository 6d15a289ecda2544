#!/bin/bash
# Makes echarts.min.js anew, in a folder of its own, and compares it with the one that is here: for whoever
# wants another version, or wants to know that this one is what it says. Needs npm, and packages from its registry.
# Not part of a build: blktape is built of the file as it is.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm init -y >/dev/null
npm install --no-audit --no-fund --ignore-scripts echarts@6.1.0 zrender@6.1.0 tslib@2.3.0 esbuild@0.28.2
cp "$here/entry.js" .
banner='/*! Apache ECharts 6.1.0, (c) The Apache Software Foundation, Apache-2.0; zrender 6.1.0, (c) Baidu Inc., BSD-3-Clause;'
banner+=' tslib 2.3.0, (c) Microsoft Corporation, 0BSD. Reduced to what blktape uses. */'
# The linker of JavaScript alone, without the start script that its package would run at installation.
node_modules/@esbuild/linux-*/bin/esbuild entry.js --bundle --minify --format=iife --global-name=echarts --target=es2018 \
  --charset=ascii --legal-comments=none --banner:js="$banner" --outfile=echarts.min.js
sha256sum echarts.min.js
if [ "${1:-}" = --replace ]; then
  cp echarts.min.js "$here/"
elif ! cmp echarts.min.js "$here/echarts.min.js"; then
  echo "differs from the one in third_party/echarts; --replace takes it over" >&2
  exit 1
fi
