// The budgets of research tasks. Pure.
import type { Amounts, Depth } from "./mode";

/** The budgets that the service has for the depths. */
export const budgets: Readonly<Record<Depth, Amounts>> = {
  quick: { tokens: 100_000, pages: 12, seconds: 300 },
  standard: { tokens: 400_000, pages: 40, seconds: 1_200 },
  deep: { tokens: 1_500_000, pages: 120, seconds: 3_600 },
};

/** The largest amounts that the service accepts. */
export const largest: Amounts = { tokens: 10_000_000, pages: 500, seconds: 14_400 };

export type Unit = keyof Amounts;
export const units: readonly Unit[] = ["tokens", "pages", "seconds"];

/** How many of what a unit is displayed in: time in minutes. */
export const scale = (unit: Unit): number => (unit === "seconds" ? 60 : 1);

/** Reads a typed amount of the displayed unit; undefined: that of the depth; NaN: it is no amount that the service accepts. */
export function readAmount(unit: Unit, typed: string): number | undefined {
  const text = typed.normalize("NFKC").replace(/[\s,.٬'’_]/g, "");
  if (text === "") return undefined;
  const digits = text.replace(/[٠-٩]/g, (digit) => String(digit.charCodeAt(0) - 0x660));
  const amount = /^\d{1,9}$/.test(digits) ? Number(digits) * scale(unit) : NaN;
  return amount >= 1 && amount <= largest[unit] ? amount : NaN;
}

/** Whether every amount is one that the service accepts. */
export const isUsable = (budget: Partial<Amounts>): boolean =>
  !Object.values(budget).some((amount) => Number.isNaN(amount));
