// The budgets of research tasks. Pure.
import { maxResearchBudget } from "../../generated/limits";
import type { Amounts } from "./mode";

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
  return amount >= 1 && amount <= maxResearchBudget[unit] ? amount : NaN;
}

/** Whether every amount is one that the service accepts. */
export const isUsable = (budget: Partial<Amounts>): boolean =>
  !Object.values(budget).some((amount) => Number.isNaN(amount));
