import { describe, expect, test } from "vitest";
import type { Problem } from "../../api/problem";
import { formErrorsOf } from "./form-errors";
import { providerFailureIn } from "./provider-errors";

const refusal = (status: number, code: string, errors: { field: string; message: string }[] = [], retryAfter = 0) => ({
  status,
  code,
  retryAfter,
  problem: { status, code, errors, detail: "", request_id: "", title: "", type: "" } satisfies Problem,
});

describe("texts for a refused sign-in", () => {
  test("a wrong password and an unknown address give the same text", () => {
    expect(formErrorsOf(refusal(401, "unauthenticated"), false)).toEqual({
      fields: {},
      form: "pages.auth.wrong",
      retryAt: 0,
    });
  });

  test("wrong fields give texts for these fields", () => {
    const errors = [
      { field: "body.email", message: "" },
      { field: "body.password", message: "" },
    ];
    expect(formErrorsOf(refusal(422, "invalid", errors), true)).toEqual({
      fields: { email: "pages.auth.email_invalid", password: "pages.auth.password_weak" },
      form: null,
      retryAt: 0,
    });
    expect(formErrorsOf(refusal(409, "email_taken"), true).fields).toEqual({ email: "pages.auth.email_taken" });
    expect(formErrorsOf(refusal(422, "invalid", [{ field: "body.planet", message: "" }]), true).form).toBe(
      "pages.auth.invalid",
    );
  });

  test("a link that does not work, and a service without mail, give their own texts", () => {
    const token = [{ field: "body.token", message: "" }];
    expect(formErrorsOf(refusal(422, "invalid", token), false).fields).toEqual({ token: "pages.mail_link.invalid" });
    expect(formErrorsOf(refusal(403, "mail_not_configured"), false).form).toBe("pages.auth.mail_off");
    expect(formErrorsOf(refusal(403, "registration_closed"), false).form).toBe("pages.auth.registration_closed");
    expect(formErrorsOf(refusal(403, "csrf"), false).form).toBe("pages.auth.wrong_origin");
  });

  test("a rate limit gives the end of the wait", () => {
    expect(formErrorsOf(refusal(429, "rate_limited", [], 12_000), false, 1_000)).toEqual({
      fields: {},
      form: "pages.auth.too_many",
      retryAt: 13_000,
    });
  });

  test("no response and a 503 have one text if something may have been created, and another if not", () => {
    expect(formErrorsOf(refusal(0, "unreachable"), true).form).toBe("pages.auth.outcome_unknown");
    expect(formErrorsOf(refusal(503, "unavailable"), true).form).toBe("pages.auth.outcome_unknown");
    expect(formErrorsOf(refusal(0, "unreachable"), false).form).toBe("pages.auth.unreachable");
    expect(formErrorsOf(refusal(503, "unavailable"), false).form).toBe("pages.auth.unavailable");
  });
});

describe("a failed sign-in with a provider", () => {
  test("has a text for every reason", () => {
    expect(providerFailureIn("?refused=unauthenticated")).toBe("pages.providers.declined");
    expect(providerFailureIn("?refused=csrf")).toBe("pages.providers.expired");
    for (const other of ["unavailable", "", "constructor"])
      expect(providerFailureIn(`?refused=${other}`)).toBe("pages.providers.unavailable");
  });

  test("is not reported for any other URL", () => {
    expect(providerFailureIn("")).toBeNull();
    expect(providerFailureIn("?q=refused")).toBeNull();
  });
});
