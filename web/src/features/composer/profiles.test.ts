import { createIntl } from "@formatjs/intl";
import { expect, test, vi } from "vitest";

vi.stubGlobal("location", { origin: "http://127.0.0.1" });
const { optionOf } = await import("./profiles");

test("a profile is shown with its model and the size of its context, once they are known", () => {
  const intl = createIntl({ locale: "en", messages: {} });
  const t = (id: string, values?: object) => (values === undefined ? id : JSON.stringify(values));
  const able = {
    profile: "coding",
    model_id: "writer-2",
    pictures: true,
    tools: true,
    context_tokens: 128_000,
    max_output_tokens: 8_192,
    effort: null,
    fallback: false,
  } as const;
  expect(optionOf("coding", [able], { t, intl })).toEqual({
    value: "coding",
    label: '{"profile":"composer.profile.coding","model":"writer-2"}',
    hint: '{"hint":"composer.profile.coding.hint","tokens":"128K"}',
  });
  const unnamed = { value: "auto", label: "composer.profile.auto", hint: "composer.profile.auto.hint" };
  expect(optionOf("auto", [able], { t, intl })).toEqual(unnamed);
  expect(optionOf("auto", undefined, { t, intl })).toEqual(unnamed);
});
