#!/usr/bin/env python3
"""check.py: what test_check.c leaves to Python.

    check.py junit FILE          "TESTS FAILURES" of JUnit's XML, and the name of each testcase that fails
    check.py steps FILE NAME...  the commands of these steps of a GitHub workflow, as a shell script
    check.py metrics PAGE        "METRIC SUBJECT..." a line, as weir(1) lists them
"""
import re
import sys
import xml.etree.ElementTree as ET


def junit(path):
    root = ET.parse(path).getroot()
    assert root.tag == 'testsuites', root.tag
    (suite,) = root
    assert suite.tag == 'testsuite' and suite.get('name'), suite.tag
    failed = []
    for case in suite:
        assert case.tag == 'testcase' and case.get('name') and case.get('classname'), case.tag
        assert len(case) <= 1
        for failure in case:
            assert failure.tag == 'failure' and failure.get('message') and failure.get('type'), failure.tag
            failed.append(case.get('name'))
    for each in (root, suite):
        assert int(each.get('tests')) == len(suite) and int(each.get('failures')) == len(failed)
        assert each.get('errors') == '0'
    print(len(suite), len(failed))
    print('\n'.join(failed))


def steps(path, *names):
    text = open(path, encoding='utf-8').read()
    for name in names:
        step = re.search(rf'- name: {re.escape(name)}\n((?: {{8}}.*\n)+)', text)
        block = re.search(r'^ {8}run: \|\n((?: {10}.*\n)+)', step.group(1), re.M)
        print('(set -e')
        print(re.sub(r'^ {10}', '', block.group(1), flags=re.M), end='')
        print(f') || {{ echo "failed: {name}"; status=1; }}')
    print('exit ${status:-0}')


def metrics(path):
    page = open(path, encoding='utf-8').read()
    section = page[page.index('.Sh METRICS'):page.index('.Sh CONDITIONS')]
    for name, subjects in re.findall(r'^\.It Cm (\S+) Pq (.*)$', section, re.M):
        print(name, subjects.replace(',', ''))


if __name__ == '__main__':
    {'junit': junit, 'steps': steps, 'metrics': metrics}[sys.argv[1]](*sys.argv[2:])
