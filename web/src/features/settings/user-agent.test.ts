import { expect, test } from "vitest";
import { parseUserAgent } from "./user-agent";

test("browsers and devices get their common names", () => {
  const name = (agent: string) => Object.values(parseUserAgent(agent)).join(" / ");
  expect(
    name(
      "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0",
    ),
  ).toBe("Edge / Windows");
  expect(name("Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0")).toBe("Firefox / Linux");
  expect(
    name(
      "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1",
    ),
  ).toBe("Safari / iPhone");
  expect(
    name(
      "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/140.0 Mobile/15E148 Safari/604.1",
    ),
  ).toBe("Chrome / iPhone");
  expect(
    name(
      "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
    ),
  ).toBe("Chrome / macOS");
  expect(
    name(
      "Mozilla/5.0 (Linux; Android 15; SM-S921B) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36",
    ),
  ).toBe("Samsung Internet / Android");
  expect(parseUserAgent("curl/8.5.0")).toEqual({ browser: "curl", system: null });
  expect(parseUserAgent("")).toEqual({ browser: null, system: null });
});
