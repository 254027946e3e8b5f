import asyncio

import pytest

from judging.evaluators.http_client import GuardedResolver
from judging.evaluators.providers.addresses import check_address, check_base_url
from judging.evaluators.providers.errors import ForbiddenAddress
from tests.judging.providers.conftest import Names


@pytest.mark.parametrize(
    "address",
    [
        "https://api.example.com/v1/",
        "http://8.8.8.8:8000/v1",
        "https://[2606:4700::1111]/v1",
        "https://my_vllm.xn--mller-kva.example/v1",
    ],
)
def test_public_hosts_may_be_called(address):
    assert check_address(address) == address.rstrip("/")


@pytest.mark.parametrize(
    "address",
    [
        "",
        "api.example.com/v1",
        "ftp://api.example.com",
        "file:///etc/passwd",
        "http:///v1",
        "http://user:word@api.example.com",
        "http://user@api.example.com",
        "https://api.example.com/v1?key=1",
        "https://api.example.com/v1#x",
        "https://api.example.com:99999/",
        "https://api.example.com:0/",
        "https://ⓛocalhost/",
        "https://local\u00adhost/",
        "https://a..example.com/",
        "https://%6cocalhost/",
        "https://-a.example.com/",
        "https://a-.example.com/",
        f"https://{'a' * 64}.example.com/",
        f"https://{'a.' * 127}com/",
        "https://api.example.com\\@127.0.0.1/",
        "https://api.example .com/",
        "https://api.example.com\\v1",
        "http://[::1",
    ],
)
def test_what_is_not_a_plain_web_address_is_refused(address):
    with pytest.raises(ForbiddenAddress):
        check_address(address, ["127.0.0.1", "api.example.com"])


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "169.254.1.1",
        "[fe80::1]",
        "[fe80::1%25eth0]",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "[64:ff9b:1::a9fe:a9fe]",
        "[::ffff:0:a9fe:a9fe]",
        "[::a9fe:a9fe]",
        "[2002:a9fe:a9fe::1]",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "168.63.129.16",
        "224.0.0.1",
        "metadata.google.internal",
        "METADATA.google.internal.",
    ],
)
def test_metadata_and_link_local_hosts_are_refused_also_when_listed(host):
    with pytest.raises(ForbiddenAddress, match="must not be called"):
        check_address(f"http://{host}/", [host.strip("[]"), host, host.lower().rstrip(".")])


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "evaluator.local",
        "host.docker.internal",
        "10.0.0.8",
        "172.16.0.1",
        "192.168.1.5",
        "0.0.0.0",
        "100.64.0.1",
        "198.18.0.1",
        "255.255.255.255",
        "[::]",
        "[::1]",
        "[::1%25lo]",
        "[fc00::1]",
        # Another part of this prefix may carry the IPv4 address.
        "[64:ff9b:1:7f00:0:100:808:808]",
        "[fd12:3456::1]",
        "[fec0::1]",
        "[2001:db8::1]",
        "[200::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:10.0.0.1]",
        "[::ffff:0:10.0.0.1]",
        "[::10.0.0.1]",
        "[64:ff9b::10.0.0.1]",
        "[64:ff9b:1::10.0.0.1]",
        "[2002:a00:1::1]",
        "[2001:0:53aa:64c::1]",
    ],
)
def test_hosts_that_are_not_public_may_be_called_only_when_listed(host):
    with pytest.raises(ForbiddenAddress, match="EVALUATOR_HOSTS"):
        check_address(f"http://{host}:8000/v1", ["other.example.com"])
    check_address(f"http://{host}:8000/v1", [host.strip("[]")])


def test_a_listed_port_allows_that_port_alone():
    check_address("http://127.0.0.1:8000/v1", ["127.0.0.1:8000"])
    check_address("http://[::1]:8000/v1", ["[::1]:8000"])
    with pytest.raises(ForbiddenAddress):
        check_address("http://127.0.0.1:6379/", ["127.0.0.1:8000"])


@pytest.mark.parametrize("host", ["2130706433", "127.1", "0x7f000001", "0x7f.1", "0177.0.0.1"])
def test_other_spellings_of_an_ip_address_are_refused(host):
    with pytest.raises(ForbiddenAddress):
        check_address(f"http://{host}/", ["127.0.0.1"])


def resolve(resolver, host="api.example.com"):
    return asyncio.run(resolver.resolve(host, 443))


def test_a_name_that_changes_its_mind_is_refused_at_its_next_connection():
    resolver = GuardedResolver([], Names(["93.184.215.14"], ["127.0.0.1"]))
    assert resolve(resolver)[0]["host"] == "93.184.215.14"
    with pytest.raises(ForbiddenAddress):
        resolve(resolver)


@pytest.mark.parametrize("host", ["fe80::1", "::ffff:169.254.169.254", "::1", "64:ff9b::7f00:1"])
def test_a_name_may_not_lead_to_such_an_address_either(host):
    with pytest.raises(ForbiddenAddress):
        resolve(GuardedResolver([], Names([host])))


def test_one_forbidden_address_among_several_is_enough():
    with pytest.raises(ForbiddenAddress):
        resolve(GuardedResolver([], Names(["93.184.215.14", "10.0.0.1"])))


def test_a_listed_name_may_lead_to_a_private_address_but_never_to_metadata():
    names = Names(["10.0.0.1"], ["169.254.169.254"])
    resolver = GuardedResolver(["api.example.com"], names)
    assert resolve(resolver)[0]["host"] == "10.0.0.1"
    with pytest.raises(ForbiddenAddress, match="must not be called"):
        resolve(resolver)


@pytest.mark.parametrize(
    ("address", "base"),
    [
        ("https://api.openai.com/v1/chat/completions", "https://api.openai.com/v1"),
        ("https://judge.example/v1/completions/", "https://judge.example/v1"),
        ("https://api.anthropic.com/v1/messages", "https://api.anthropic.com/v1"),
        ("https://api.openai.com/v1/responses", "https://api.openai.com/v1"),
        ("https://judge.example/v1/models", "https://judge.example/v1"),
        (
            "https://google.example/v1beta/models/gemini-9:generateContent",
            "https://google.example/v1beta",
        ),
    ],
)
def test_the_address_of_a_call_is_refused_with_the_base_url(address, base):
    with pytest.raises(ForbiddenAddress) as caught:
        check_base_url(address)
    assert f"Enter the base URL, {base}: " in str(caught.value)
    assert check_base_url(base) == base
