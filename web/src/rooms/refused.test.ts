import { describe, expect, test } from "vitest";
import type { Problem } from "../api/problem";
import { explain, turnedAwayIn } from "./refused";

const refusal = (status: number, code: string, errors: { field: string; message: string }[] = [], retryAfter = 0) => ({
  status, code, retryAfter, problem: { status, code, errors, detail: "", request_id: "", title: "", type: "" } satisfies Problem,
});

describe("what a refused sign-in is told as", () => {
  test("a wrong password is not told from an unknown address", () => {
    expect(explain(refusal(401, "unauthenticated"), false)).toEqual({ fields: {}, whole: "rooms.entry.wrong", until: 0 });
  });

  test("wrong fields are told beside the fields", () => {
    const errors = [{ field: "body.email", message: "" }, { field: "body.password", message: "" }];
    expect(explain(refusal(422, "invalid", errors), true)).toEqual({ fields: { email: "rooms.entry.email_wrong", password: "rooms.entry.password_weak" }, whole: null, until: 0 });
    expect(explain(refusal(409, "email_taken"), true).fields).toEqual({ email: "rooms.entry.taken" });
    expect(explain(refusal(422, "invalid", [{ field: "body.planet", message: "" }]), true).whole).toBe("rooms.entry.odd");
  });

  test("a limit says until when", () => {
    expect(explain(refusal(429, "rate_limited", [], 12_000), false, 1_000)).toEqual({ fields: {}, whole: "rooms.entry.too_many", until: 13_000 });
  });

  test("no answer is told as not known where something may have been made, and as nothing done where not", () => {
    expect(explain(refusal(0, "unreachable"), true).whole).toBe("rooms.entry.unknown");
    expect(explain(refusal(503, "unavailable"), true).whole).toBe("rooms.entry.unknown");
    expect(explain(refusal(0, "unreachable"), false).whole).toBe("rooms.entry.unreachable");
    expect(explain(refusal(503, "unavailable"), false).whole).toBe("rooms.entry.away");
  });
});

describe("who comes back from a provider without being signed in", () => {
  test("is told why, in words for every reason", () => {
    expect(turnedAwayIn("?refused=unauthenticated")).toBe("rooms.providers.declined");
    expect(turnedAwayIn("?refused=csrf")).toBe("rooms.providers.late");
    for (const other of ["unavailable", "", "constructor"]) expect(turnedAwayIn(`?refused=${other}`)).toBe("rooms.providers.away");
  });

  test("any other address says nothing", () => {
    expect(turnedAwayIn("")).toBeNull();
    expect(turnedAwayIn("?q=refused")).toBeNull();
  });
});
