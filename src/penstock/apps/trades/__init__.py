"""Trades: each beside the quote of its moment, and average prices that corrections of trades correct."""
