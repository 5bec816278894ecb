#!/usr/bin/env python3
"""scrape.py: pages of metrics, read by those whom they are for.

    scrape.py parsers PAGE OPENMETRICS      both texts, by prometheus_client's parsers and by promtool
    scrape.py hostile JOB OPENMETRICS       the label job is JOB, as far as a page has it
    scrape.py prometheus PORT TOKEN         a Prometheus of the test's own scrapes 127.0.0.1:PORT
    scrape.py exporter FOLDER               a node_exporter of the test's own has the files of FOLDER

What is started listens on the loopback interface, keeps its files in the working directory, and is ended by its pid.
"""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

FAMILIES = {'weir_live_bytes', 'weir_peak_bytes', 'weir_cached_bytes', 'weir_device_used_bytes', 'weir_copied_bytes',
            'weir_copies', 'weir_wait_seconds', 'weir_cache_hits', 'weir_allocation_failures', 'weir_dropped_events',
            'weir_own_seconds', 'weir_dumps'}


def program(name, package):
    path = shutil.which(name) or shutil.which(name, path='/usr/sbin:/usr/local/bin')
    if not path:
        sys.exit(f'{name} is missing: it is in the package {package} (make deps-all)')
    return path


def parsers(page, open_metrics):
    try:
        from prometheus_client import parser
        from prometheus_client.openmetrics import parser as open_parser
    except ImportError:
        sys.exit('prometheus-client is missing: the build fetches it from PyPI into its venv')
    with open(page, encoding='utf-8') as f:
        text = f.read()
    with open(open_metrics, encoding='utf-8') as f:
        open_text = f.read()
    old = {f.name: f for f in parser.text_string_to_metric_families(text)}
    new = {f.name: f for f in open_parser.text_string_to_metric_families(open_text)}
    assert FAMILIES <= set(new), FAMILIES - set(new)
    samples = [{(s.name, tuple(sorted(s.labels.items()))) for f in page.values() for s in f.samples} for page in (old, new)]
    assert samples[0] == samples[1], samples[0] ^ samples[1]
    assert 10 < len(samples[0]) <= 500, len(samples[0])
    subprocess.run([program('promtool', 'prometheus'), 'check', 'metrics'], input=text.encode(), check=True)


def hostile(job, open_metrics):
    from prometheus_client.openmetrics import parser as open_parser
    wanted = os.fsencode(job)[:400].decode('utf-8', 'replace')
    with open(open_metrics, encoding='utf-8') as f:
        families = list(open_parser.text_string_to_metric_families(f.read()))
    shown = {s.labels['job'] for f in families for s in f.samples}
    assert len(shown) == 1, shown
    (shown,) = shown
    plain = ''.join('?' if (c < ' ' and c != '\n') or c == '\x7f' else c for c in wanted)
    assert shown == plain, (shown, plain)


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as reply:
            return reply.read().decode()
    except OSError:
        return None


def until(ask):
    while True:
        found = ask()
        if found:
            return found
        time.sleep(0.1)


def with_server(command, ask):
    with open('server.log', 'wb') as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        try:
            return until(lambda: server.poll() is None and ask())
        finally:
            server.kill()


def answer_dashboard(answer):
    """Each query of the dashboard is one, and each metric in it is there."""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, '../../tools/metrics/dashboard.json'), encoding='utf-8') as f:
        panels = json.load(f)['panels']
    queries = [target['expr'] for panel in panels for target in panel['targets']]
    assert len(queries) >= 14, queries
    for query in queries:
        for name, value in (('$job', '.*'), ('$rank', '.*'), ('$__rate_interval', '1m')):
            query = query.replace(name, value)
        assert answer(query) is not None, query
    for name in {name for query in queries for name in re.findall(r'weir_\w+', query)}:
        if 'cache' not in name:  # the program has none
            assert answer(name), name


def prometheus(port, token):
    own = free_port()
    with open('prometheus.yml', 'w', encoding='utf-8') as f:
        json.dump({'scrape_configs': [{'job_name': 'weir', 'scrape_interval': '1s', 'honor_labels': True,
                                       'authorization': {'credentials_file': os.path.abspath(token)},
                                       'static_configs': [{'targets': [f'127.0.0.1:{port}']}]}]}, f)

    def answer(query):
        reply = get(f'http://127.0.0.1:{own}/api/v1/query?query=' + urllib.parse.quote(query))
        return json.loads(reply)['data']['result'] if reply else None

    def ask():
        result = answer('sum(weir_live_bytes{memory="device"})')
        if result:
            answer_dashboard(answer)
        return result and result[0]['value'][1]

    live = with_server([program('prometheus', 'prometheus'), '--config.file=prometheus.yml', '--storage.tsdb.path=tsdb',
                        f'--web.listen-address=127.0.0.1:{own}'], ask)
    assert live == str(5 << 20), live


def exporter(folder):
    own = free_port()

    def ask():
        page = get(f'http://127.0.0.1:{own}/metrics')
        return page and [line for line in page.split('\n') if line.startswith('weir_peak_bytes')] and page

    page = with_server([program('prometheus-node-exporter', 'prometheus-node-exporter'), '--collector.disable-defaults',
                        '--collector.textfile', f'--collector.textfile.directory={folder}',
                        f'--web.listen-address=127.0.0.1:{own}'], ask)
    assert 'node_textfile_scrape_error 0' in page, page


if __name__ == '__main__':
    {'parsers': parsers, 'hostile': hostile, 'prometheus': prometheus, 'exporter': exporter}[sys.argv[1]](*sys.argv[2:])
