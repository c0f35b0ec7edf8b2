// Sizes of files as texts.
import type { Localization } from "./localization";

const units = ["byte", "kilobyte", "megabyte", "gigabyte"] as const;

/** Returns a number of bytes in the largest unit of which it has at least one, for example 1.5 MB. */
export function byteSize(intl: Localization["intl"], bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  // The short name of a byte has no plural.
  const unitDisplay = power === 0 ? "long" : "short";
  return intl.formatNumber(bytes / 1024 ** power, {
    style: "unit",
    unit: units[power]!,
    unitDisplay,
    maximumFractionDigits: 1,
  });
}
