"""Addresses of MariaDB, and what is said of wrong ones."""

import pytest

from penstock.capture.mysql.address import Address, is_mysql
from penstock.errors import CaptureError
from penstock.settings import Secret


def test_an_address_is_taken_apart_and_the_password_is_in_no_text():
    found = Address.parse(Secret("mariadb://ada:p%40ss%2Fword@db.example:3307/shop?ssl-ca=/etc/ca.pem"))
    assert (found.host, found.port, found.user, found.database) == ("db.example", 3307, "ada", "shop")
    assert (found.password, found.authority) == ("p@ss/word", "/etc/ca.pem")
    assert "p@ss" not in repr(found)
    assert Address.parse(Secret("mysql://ada@db")).port == 3306


@pytest.mark.parametrize(
    "text", ["mariadb://host/shop", "mariadb://u:secret@host:port/shop", "mariadb://u:secret@h/shop?odd=1"]
)
def test_a_wrong_address_is_refused_without_its_text(text):
    with pytest.raises(CaptureError, match="can't be read") as error:
        Address.parse(Secret(text))
    assert "secret" not in str(error.value)


def test_the_kind_of_database_comes_from_the_address():
    assert is_mysql(Secret("mysql://u@h"))
    assert is_mysql(Secret("mariadb://u@h"))
    assert not is_mysql(Secret("postgresql://u@h"))
    assert not is_mysql(Secret("host=h dbname=mysql"))
