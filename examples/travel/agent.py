"""An agent that plans a trip, and asks for what it was not told.

    dragoman run examples.travel.agent:agent

Say where you start, where you want to go, when, for how many nights and how many you are, in words ("from Vienna to
Lisbon on 2026-05-03, 4 nights, 2 people") or as a data part (``{"origin": "Vienna", "nights": 4}``). For what is
missing, or cannot be understood, the task turns to INPUT_REQUIRED and a question is its status message; the next
message of the task is the answer. The result is the plan as data and in words.

The questions and answers are kept with the task: when the server is stopped, or killed, between two of them, the
conversation goes on where it was.
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Any

from dragoman import Agent, Context, Reject

from .places import City, distance_km
from .wishes import WISHES, Unclear, Wish, read_first_message

ATTEMPTS = 3
FARE_PER_KM, FARE_AT_LEAST = 0.11, 25.0

agent = Agent(
    "Travel desk",
    description="Plans a city trip and asks for what it needs to know",
    input_modes=("text/plain", "application/json"),
    output_modes=("application/json", "text/plain"),
)


@agent.task(
    id="plan-trip",
    name="Plan a trip",
    description="From two cities, a date, nights and people to a plan with a price",
    tags=["travel", "multi-turn"],
    examples=["From Vienna to Lisbon on 2026-05-03, 4 nights, 2 people", "I want to go to Rome"],
)
async def plan_trip(ctx: Context) -> str:
    """Ask until everything is known, then plan."""
    known = read_first_message(ctx.text, ctx.data)
    for wish in WISHES:
        if wish.name not in known:
            known[wish.name] = await ask_for(ctx, wish)
    if known["origin"] == known["destination"]:
        raise Reject(f"You are in {known['origin'].name} already.")
    await ctx.update(f"Looking for ways to {known['destination'].name}")
    reference = await ctx.once("reference", reserve)
    plan = make_plan(reference, **known)
    await ctx.artifact(plan, name="plan", artifact_id="plan")
    return in_words(plan)


async def ask_for(ctx: Context, wish: Wish) -> Any:
    """The answer to a wish's question; asks again when it cannot be understood, and gives up in the end."""
    question = wish.question
    for _ in range(ATTEMPTS):
        answer = await ctx.ask(question)
        try:
            return wish.read(answer.text)
        except Unclear as unclear:
            question = f"I did not understand that. {unclear} {wish.question}"
    raise Reject(f"Without an answer to “{wish.question}” there is nothing I can plan.")


async def reserve() -> str:
    """A booking reference. Made once for each task, however often the handler runs."""
    return secrets.token_hex(4).upper()


def make_plan(
    reference: str, *, origin: City, destination: City, departure: Any, nights: int, people: int
) -> dict[str, Any]:
    """The plan as data; prices in euros."""
    distance = distance_km(origin, destination)
    fare = round(max(FARE_AT_LEAST, distance * FARE_PER_KM) * 2 * people)
    rooms = -(-people // 2)
    stay = destination.night * nights * rooms
    return {
        "reference": reference,
        "origin": origin.name,
        "destination": destination.name,
        "departure": departure.isoformat(),
        "return": (departure + timedelta(days=nights)).isoformat(),
        "people": people,
        "distanceKm": round(distance),
        "costs": [{"what": "travel", "euros": fare}, {"what": f"{rooms} room(s)", "euros": stay}],
        "total": fare + stay,
    }


def in_words(plan: dict[str, Any]) -> str:
    """The plan as a sentence."""
    return (
        f"{plan['origin']} to {plan['destination']} ({plan['distanceKm']:,} km), "
        f"{plan['departure']} to {plan['return']}, "
        f"for {plan['people']}: {plan['total']:,} euros. Reference {plan['reference']}."
    )
