import { createIntl } from "@formatjs/intl";
import { expect, test } from "vitest";
import { byteSize } from "./byte-size";

test("a size is written in the largest unit of which it has at least one", () => {
  const sizeIn = (locale: string, bytes: number) => byteSize(createIntl({ locale, messages: {} }), bytes);
  const sizes = [0, 1, 1023, 1024, 1_572_864, 2 * 2 ** 30, 5000 * 2 ** 30].map((bytes) => sizeIn("en", bytes));
  expect(sizes).toEqual(["0 bytes", "1 byte", "1,023 bytes", "1 kB", "1.5 MB", "2 GB", "5,000 GB"]);
  expect(sizeIn("ja", 1_572_864)).toBe("1.5 MB");
});
