// What the composer shows while its next send starts a research task: how deep it is, what it searches, and what it may use.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useId, useRef, useState } from "react";
import { consentsQuery } from "../../api/consents";
import { failureOf, failureText } from "../../api/outbox-message";
import type { Refusal } from "../../api/problem";
import { maxResearchBudget, maxResearchFiles, maxResearchQuestion, researchBudgets } from "../../generated/limits";
import { Button, IconButton } from "../../controls/button";
import { FormError } from "../../controls/form-error";
import { Icon } from "../../controls/icon";
import { useLocalization, useMessages } from "../../messages/localization";
import { researchMessages } from "../../messages/research";
import { isUsable, readAmount, scale, units, type Unit } from "./budget";
import {
  chooseResearch,
  idle,
  useResearchMode,
  type Amounts,
  type Depth,
  type Place,
  type ResearchChoice,
} from "./mode";
import { removeUnused } from "./remove-unused";

interface PanelProps {
  conversation: string;
  /** Characters of the text. */
  length: number;
  /** The number of files of the message, which are searched. */
  files: number;
  /** Whether the conversation is temporary: it searches neither files nor conversations of the account. */
  temporary: boolean;
  /** Whether the conversation has a page of its own, and nothing is in its composer. */
  isEmpty: () => boolean;
}

const depths = ["quick", "standard", "deep"] as const;
const places = ["web", "files", "conversations"] as const;

export function ResearchPanel({ conversation, length, files, temporary, isEmpty }: PanelProps) {
  const t = useMessages(researchMessages);
  const choice = useResearchMode(({ choices }) => choices[conversation]);
  const { sending, retry, refusal } = useResearchMode(({ starting }) => starting[conversation] ?? idle);
  useRemoval(conversation, choice?.refused, isEmpty);
  if (choice === undefined) return null;
  const change = (changed: Partial<ResearchChoice>) => chooseResearch(conversation, { ...choice, ...changed });
  return (
    <section
      aria-label={t("research.options")}
      className="flex flex-col gap-2.5 border-b border-line px-3 pt-2 pb-2.5 text-sm"
    >
      <div className="flex items-start gap-2">
        <span className="mt-0.5 text-accent">
          <Icon name="research" size={16} />
        </span>
        <p className="min-w-0 grow text-soft">{t("research.about")}</p>
        <IconButton
          icon="close"
          size="small"
          label={t("research.leave")}
          disabled={sending}
          onClick={() => chooseResearch(conversation, null)}
        />
      </div>
      <fieldset disabled={sending} className="flex flex-col gap-2.5">
        <Depths value={choice.depth} onChange={(depth) => change({ depth, budget: {} })} />
        <Places
          chosen={choice.places}
          files={files}
          temporary={temporary}
          onChange={(chosen) => change({ places: chosen })}
        />
        <Budget choice={choice} onChange={(budget) => change({ budget })} />
      </fieldset>
      <div role="status" className="text-soft empty:hidden">
        {sending &&
          t(
            retry === null
              ? "research.sending"
              : retry.status === 401
                ? "research.signed_out"
                : "research.sending_again",
          )}
      </div>
      <div role="alert" className="flex flex-col gap-1 empty:hidden">
        {length > maxResearchQuestion && (
          <FormError>{t("research.too_long", { over: length - maxResearchQuestion })}</FormError>
        )}
        {files > maxResearchFiles && <FormError>{t("research.too_many_files", { count: maxResearchFiles })}</FormError>}
        {choice.places.length === 0 && <FormError>{t("research.no_place")}</FormError>}
        {refusal !== null && <Refused refusal={refusal} />}
      </div>
    </section>
  );
}

/** Removes the conversation of a refused start with its options, if it is empty: when they are left, or the conversation is. */
function useRemoval(conversation: string, question: string | undefined, isEmpty: () => boolean): void {
  const navigate = useNavigate();
  const last = useRef({ question, isEmpty });
  useEffect(() => void (last.current = { question, isEmpty }));
  useEffect(
    () => () => {
      const { question, isEmpty } = last.current;
      if (question !== undefined) void removeUnused(conversation, question, isEmpty, () => void navigate({ to: "/" }));
    },
    [conversation, navigate],
  );
}

function Depths({ value, onChange }: { value: Depth; onChange: (depth: Depth) => void }) {
  const t = useMessages(researchMessages);
  const id = useId();
  return (
    <div
      role="radiogroup"
      aria-label={t("research.depth")}
      aria-describedby={`${id}-hint`}
      className="flex flex-col gap-1"
    >
      <div className="flex gap-0.5 self-start rounded-md border border-line bg-sunken p-0.5 max-sm:self-stretch">
        {depths.map((depth) => (
          <label
            key={depth}
            className="relative flex min-h-8 grow items-center justify-center px-3 text-soft has-checked:font-medium has-checked:text-ink pointer-coarse:min-h-11"
          >
            <input
              type="radio"
              name={id}
              value={depth}
              checked={depth === value}
              onChange={() => onChange(depth)}
              className="absolute inset-0 cursor-pointer appearance-none rounded-sm border border-transparent checked:border-edge checked:bg-raised not-checked:hover:bg-hover forced-colors:checked:border-[Highlight]"
            />
            <span className="pointer-events-none relative">{t(`research.depth.${depth}`)}</span>
          </label>
        ))}
      </div>
      <span id={`${id}-hint`} className="text-xs text-faint">
        {t(`research.depth.${value}.hint`)}
      </span>
    </div>
  );
}

interface PlacesProps {
  chosen: readonly Place[];
  files: number;
  temporary: boolean;
  onChange: (chosen: readonly Place[]) => void;
}

/** The places that are searched. One without the consent of the account cannot be chosen, and says where to grant it. */
function Places({ chosen, files, temporary, onChange }: PlacesProps) {
  const t = useMessages(researchMessages);
  const { data } = useQuery(consentsQuery);
  const id = useId();
  const granted = (place: Place) => data?.data.find(({ source }) => source === place)?.granted === true;
  const may = (place: Place) => place === "web" || (!temporary && granted(place));
  const asks = data !== undefined && !temporary && places.some((place) => !may(place));
  return (
    <div role="group" aria-label={t("research.places")} className="flex flex-col gap-1">
      <div className="flex flex-wrap items-center gap-x-4">
        {places.map((place) => {
          const attached = place === "files" && files > 0;
          return (
            <label
              key={place}
              className={`flex min-h-8 items-center gap-2 pointer-coarse:min-h-11 ${may(place) || attached ? "" : "text-faint"}`}
            >
              <input
                type="checkbox"
                className="size-4 accent-accent"
                checked={attached || chosen.includes(place)}
                disabled={attached || (!may(place) && !chosen.includes(place))}
                aria-describedby={may(place) || attached ? undefined : `${id}-consent`}
                onChange={({ target: { checked } }) =>
                  onChange(places.filter((one) => (one === place ? checked : chosen.includes(one))))
                }
              />
              {attached ? t("research.place.attached", { count: files }) : t(`research.place.${place}`)}
            </label>
          );
        })}
      </div>
      {temporary ? (
        <p id={`${id}-consent`} className="text-xs text-faint">
          {t("research.temporary")}
        </p>
      ) : (
        asks && (
          <p id={`${id}-consent`} className="text-xs text-faint">
            {t("research.consent")}{" "}
            <Link to="/settings" hash="privacy" className="text-accent underline underline-offset-2">
              {t("research.consent.settings")}
            </Link>
          </p>
        )
      )}
    </div>
  );
}

interface BudgetProps {
  choice: ResearchChoice;
  onChange: (budget: Partial<Amounts>) => void;
}

/** What the task may use: as a sentence, or as fields. */
function Budget({ choice, onChange }: BudgetProps) {
  const t = useMessages(researchMessages);
  const [editing, edit] = useState(false);
  const id = useId();
  const { tokens, pages, seconds } = { ...researchBudgets[choice.depth], ...choice.budget };
  if (!editing && isUsable(choice.budget))
    return (
      <p className="flex flex-wrap items-center gap-x-2 text-soft">
        {t("research.budget.text", { tokens, pages, minutes: seconds / 60 })}
        <Button look="quiet" className="-my-1 px-1! text-accent!" onClick={() => edit(true)}>
          {t("research.budget.change")}
        </Button>
      </p>
    );
  return (
    <fieldset className="flex flex-col gap-1">
      <legend className="mb-1 text-soft">{t("research.budget")}</legend>
      <div className="flex flex-wrap items-end gap-2">
        {units.map((unit, at) => (
          <Amount
            key={`${choice.depth} ${unit}`}
            id={`${id}-${unit}`}
            unit={unit}
            choice={choice}
            focused={at === 0}
            onChange={(amount) => {
              const { [unit]: _, ...others } = choice.budget;
              onChange(amount === undefined ? others : { ...others, [unit]: amount });
            }}
          />
        ))}
        <Button look="quiet" disabled={!isUsable(choice.budget)} onClick={() => edit(false)}>
          {t("research.budget.done")}
        </Button>
      </div>
      <p className="text-xs text-faint">{t("research.budget.hint")}</p>
    </fieldset>
  );
}

interface AmountProps {
  id: string;
  unit: Unit;
  choice: ResearchChoice;
  focused: boolean;
  onChange: (amount: number | undefined) => void;
}

function Amount({ id, unit, choice, focused, onChange }: AmountProps) {
  const t = useMessages(researchMessages);
  const { intl } = useLocalization();
  const shown = (amount: number) => intl.formatNumber(amount / scale(unit));
  const amount = choice.budget[unit];
  const [typed, type] = useState(() => shown({ ...researchBudgets[choice.depth], ...choice.budget }[unit]));
  const wrong = Number.isNaN(amount);
  return (
    <label className="flex flex-col gap-1 text-xs text-soft">
      {t(`research.budget.${unit}`)}
      <input
        id={id}
        autoFocus={focused}
        inputMode="numeric"
        value={typed}
        aria-invalid={wrong || undefined}
        aria-describedby={wrong ? `${id}-problem` : undefined}
        onChange={({ target: { value } }) => {
          type(value);
          onChange(readAmount(unit, value));
        }}
        className={`w-28 rounded-md border bg-raised px-2 py-1.5 text-base text-ink tabular-nums md:text-sm ${wrong ? "border-danger" : "border-edge"}`}
      />
      {wrong && (
        <span id={`${id}-problem`} className="text-danger">
          {t("research.budget.wrong", { most: maxResearchBudget[unit] / scale(unit) })}
        </span>
      )}
    </label>
  );
}

/** Why the service has started no task. */
function Refused({ refusal }: { refusal: Refusal }) {
  const t = useMessages(researchMessages);
  const fields = refusal.problem?.errors ?? [];
  const ofPlaces = fields.some(({ field }) => field === "body.sources");
  const detail = failureText(failureOf(refusal, 0));
  return (
    <FormError>
      {refusal.code === "source_unavailable" ? (
        t("research.refused.unavailable", { detail })
      ) : refusal.code === "too_many_tasks" ? (
        t("research.refused.too_many")
      ) : ofPlaces ? (
        <>
          {t("research.refused.consent")}{" "}
          <Link to="/settings" hash="privacy" className="underline underline-offset-2">
            {t("research.consent.settings")}
          </Link>
        </>
      ) : (
        t("research.refused", { detail })
      )}
    </FormError>
  );
}
