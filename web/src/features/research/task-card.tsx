// The card of a research task: what it does, what it has found and used, and how the user changes it.
import { useEffect, useId, useRef, useState, type FormEvent, type ReactNode } from "react";
import { maxResearchStep, maxSteeringInput } from "../../generated/limits";
import { Button, IconButton } from "../../controls/button";
import { Dialog } from "../../controls/dialog";
import { FormError } from "../../controls/form-error";
import { Icon, type IconName } from "../../controls/icon";
import { ProgressBar } from "../../controls/progress-bar";
import { useLocalization, useMessages } from "../../messages/localization";
import { researchMessages } from "../../messages/research";
import { announce } from "../../parts/announcements";
import { Disclosure } from "../../parts/disclosure";
import { formatDuration, useElapsed } from "../../parts/elapsed";
import { webURL } from "../../parts/links";
import { isOver, type Task, type TaskInput, type TaskSource } from "../../turn/task";
import { shownSource, shownStep, type ShownSource, type ShownStep } from "./shown";
import { useCommands, useTask, type Command, type CurrentTask, type Sent } from "./use-task";

export function TaskCard({ task }: { task: Task }) {
  const t = useMessages(researchMessages);
  const current = useTask(task);
  const [sent, send] = useCommands(task);
  const section = useRef<HTMLElement>(null);
  useAnnouncedState(current.state, current.phase);
  const over = isOver(current.state);
  const works = !over && current.state !== "cancelling";
  const steerable = works && current.phase !== "synthesizing" && !current.writesNow;
  return (
    <section
      ref={section}
      tabIndex={-1}
      aria-label={t("research.task", { question: task.question })}
      data-task={task.task_id}
      className="my-4 flex flex-col gap-3 rounded-lg border border-edge bg-raised p-4 text-sm shadow-rest"
    >
      <Head task={task} current={current} />
      <Amounts task={task} current={current} />
      <Plan plan={current.plan} works={works} steerable={steerable} busy={sent?.state === "sending"} onSend={send} />
      <Sources sources={current.sources} reads={works && current.phase !== "synthesizing"} />
      <Inputs inputs={current.inputs} />
      {!over && (
        <Controls
          current={current}
          steerable={steerable}
          sent={sent}
          onSend={(command) => {
            // The pressed button is removed or disabled.
            if (command.type !== "input") section.current?.focus({ preventScroll: true });
            return send(command);
          }}
        />
      )}
    </section>
  );
}

/** Announces what the task does now, if that changes while the card is shown. */
function useAnnouncedState(state: Task["state"], phase: Task["phase"]): void {
  const t = useMessages(researchMessages);
  const text = state === "running" ? t(`research.phase.${phase}`) : t(`research.state.${state}`);
  const before = useRef(text);
  useEffect(() => {
    if (text !== before.current) announce(text);
    before.current = text;
  }, [text]);
}

function Head({ task, current }: { task: Task; current: CurrentTask }) {
  const t = useMessages(researchMessages);
  const localization = useLocalization();
  const { state, phase, isLost, runningSince, spent } = current;
  const elapsed = useElapsed(runningSince, state === "running" || state === "cancelling") ?? spent.seconds;
  return (
    <div>
      <div className="flex flex-wrap items-center justify-between gap-x-4 gap-y-1">
        <p className="flex items-center gap-2 text-accent">
          <Icon name={state === "queued" ? "clock" : "research"} size={16} />
          {state === "running" ? t(`research.phase.${phase}`) : t(`research.state.${state}`)}
        </p>
        <p className="text-faint tabular-nums">
          <span className="sr-only">{t("research.elapsed")} </span>
          {elapsed > 0 && formatDuration(localization, elapsed)}
        </p>
      </div>
      <p dir="auto" className="mt-1 text-base font-semibold wrap-anywhere whitespace-pre-wrap">
        {task.question}
      </p>
      {state === "queued" && <p className="mt-1 text-soft">{t("research.queued")}</p>}
      <p role="status" className="mt-1 text-warning empty:hidden">
        {isLost && t("research.connection")}
      </p>
    </div>
  );
}

/** The progress, and what was used of the budget. */
function Amounts({ task: { budget }, current: { progress, spent, state } }: { task: Task; current: CurrentTask }) {
  const t = useMessages(researchMessages);
  const localization = useLocalization();
  const duration = (seconds: number) =>
    seconds >= 60 && seconds % 60 === 0
      ? t("research.minutes", { minutes: seconds / 60 })
      : formatDuration(localization, seconds);
  return (
    <div className="flex flex-col gap-1.5">
      <ProgressBar
        label={t("research.progress")}
        value={state === "queued" || progress.total === 0 ? 0 : progress.done / progress.total}
      />
      <p className="flex flex-wrap gap-x-3 text-xs text-faint tabular-nums">
        <span>{t("research.steps", { done: progress.done, total: progress.total })}</span>
        <span>{t("research.spent.tokens", { spent: spent.tokens, budget: budget.tokens })}</span>
        <span>{t("research.spent.pages", { spent: spent.pages, budget: budget.pages })}</span>
        <span>{t("research.spent.time", { spent: duration(spent.seconds), budget: duration(budget.seconds) })}</span>
        {progress.reused > 0 && <span>{t("research.reused", { count: progress.reused })}</span>}
      </p>
    </div>
  );
}

const stepIcons: Readonly<Record<ShownStep, IconName>> = {
  open: "clock",
  running: "search",
  done: "check",
  struck: "close",
  skipped: "close",
  stopped: "stop",
};

interface PlanProps {
  plan: Task["plan"];
  /** Whether the task still works. */
  works: boolean;
  steerable: boolean;
  busy: boolean;
  onSend: (command: Command) => Promise<boolean>;
}

function Plan({ plan, works, steerable, busy, onSend }: PlanProps) {
  const t = useMessages(researchMessages);
  const list = useRef<HTMLOListElement>(null);
  if (plan.length === 0) return null;
  const open = plan.filter(({ state }) => state === "open" || state === "running").length;
  const strike = (step: string) => {
    list.current?.focus({ preventScroll: true }); // the pressed button is removed
    void onSend({ type: "plan", strike: [step] });
  };
  return (
    <div>
      <h3 className="font-medium">{t("research.plan")}</h3>
      <ol ref={list} tabIndex={-1} aria-label={t("research.plan")} className="mt-1 flex flex-col outline-none">
        {plan.map(({ step_id, question, state: last }) => {
          const state = shownStep(last, works);
          const left = state === "struck" || state === "skipped";
          return (
            <li key={step_id} data-step={state} className="flex min-h-8 items-start gap-2">
              <span
                className={`mt-1.5 ${state === "running" ? "text-accent" : state === "done" ? "text-success" : "text-faint"}`}
              >
                <Icon name={stepIcons[state]} size={16} />
              </span>
              <span className="min-w-0 grow py-1">
                <span className="sr-only">{t(`research.step.${state}`)} </span>
                <bdi className={`wrap-anywhere ${left ? "text-faint line-through" : ""}`}>{question}</bdi>
              </span>
              {steerable && open > 1 && (state === "open" || state === "running") && (
                <IconButton
                  icon="trash"
                  size="small"
                  label={t("research.strike")}
                  target={question}
                  disabled={busy}
                  onClick={() => strike(step_id)}
                />
              )}
            </li>
          );
        })}
      </ol>
      {steerable && (
        <TextForm
          label={t("research.add")}
          button={t("research.add.do")}
          icon="add"
          most={maxResearchStep}
          disabled={busy}
          onSend={(text) => onSend({ type: "plan", add: [text] })}
        />
      )}
    </div>
  );
}

interface FormProps {
  label: string;
  button: string;
  icon: IconName;
  most: number;
  disabled: boolean;
  onSend: (text: string) => Promise<boolean>;
}

/** A field with a button. It is cleared once the service has stored the text. */
function TextForm({ label, button, icon, most, disabled, onSend }: FormProps) {
  const [text, setText] = useState("");
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const wanted = text.trim();
    if (wanted === "" || disabled) return;
    if (await onSend(wanted)) setText((now) => (now.trim() === wanted ? "" : now));
  };
  return (
    <form className="mt-1 flex gap-2" onSubmit={(event) => void submit(event)}>
      <input
        dir="auto"
        aria-label={label}
        placeholder={label}
        maxLength={most}
        value={text}
        onChange={({ target: { value } }) => setText(value)}
        className="min-h-9 min-w-0 grow rounded-md border border-edge bg-raised px-3 text-base pointer-coarse:min-h-11 md:text-sm"
      />
      <Button type="submit" icon={icon} disabled={disabled || text.trim() === ""}>
        <span className="max-sm:sr-only">{button}</span>
      </Button>
    </form>
  );
}

const sourceIcons: Readonly<Record<ShownSource, IconName>> = {
  left: "close",
  found: "search",
  reading: "eye",
  read: "eye",
  kept: "check",
  unused: "close",
  failed: "warning",
  merged: "link",
};

/** reads: whether the task still reads sources. */
function Sources({ sources, reads }: { sources: readonly TaskSource[]; reads: boolean }) {
  const t = useMessages(researchMessages);
  if (sources.length === 0) return null;
  const count = (...states: TaskSource["state"][]) => sources.filter(({ state }) => states.includes(state)).length;
  return (
    <div>
      <h3 className="flex flex-wrap items-baseline gap-x-3 font-medium">
        {t("research.sources")}
        <span className="text-xs font-normal text-faint tabular-nums">
          {t("research.sources.count", { found: sources.length, kept: count("kept"), failed: count("failed") })}
        </span>
      </h3>
      <ul
        tabIndex={0}
        aria-label={t("research.sources")}
        className="mt-1 flex max-h-44 flex-col gap-0.5 overflow-y-auto rounded-sm"
      >
        {sources.toReversed().map((source) => (
          <SourceRow key={source.source_id} source={source} reads={reads} />
        ))}
      </ul>
    </div>
  );
}

function SourceRow({ source: { state: last, title, url, reason }, reads }: { source: TaskSource; reads: boolean }) {
  const t = useMessages(researchMessages);
  const state = shownSource(last, reads);
  const address = webURL(url ?? undefined);
  const name = title === "" ? (url ?? "") : title;
  return (
    <li data-source={state} className="flex items-start gap-2">
      <span
        className={`mt-0.5 ${state === "kept" ? "text-success" : state === "failed" ? "text-warning" : state === "reading" || state === "read" ? "text-accent" : "text-faint"}`}
      >
        <Icon name={sourceIcons[state]} size={14} />
      </span>
      <span className="min-w-0 wrap-anywhere">
        {address === undefined ? (
          <bdi>{name}</bdi>
        ) : (
          <a
            href={address}
            target="_blank"
            rel="noopener noreferrer nofollow"
            className="underline decoration-line decoration-1 underline-offset-2 hover:decoration-current"
          >
            <bdi>{name}</bdi>
          </a>
        )}{" "}
        <span className="text-xs text-faint">
          {address !== undefined && (
            <>
              <bdi>{new URL(address).host}</bdi>
              {" · "}
            </>
          )}
          {t(`research.source.${state}`)}
          {reason !== "" && (state === "failed" || state === "merged") && (
            <>
              {": "}
              <bdi>{reason}</bdi>
            </>
          )}
        </span>
      </span>
    </li>
  );
}

function Inputs({ inputs }: { inputs: readonly TaskInput[] }) {
  const t = useMessages(researchMessages);
  if (inputs.length === 0) return null;
  return (
    <ul aria-label={t("research.inputs")} className="flex flex-col gap-1.5">
      {inputs.map(({ id, text, outcome }) => (
        <li key={id} className="self-end rounded-md bg-accent-wash px-3 py-1.5">
          <p dir="auto" className="wrap-anywhere whitespace-pre-wrap">
            {text}
          </p>
          <p className="text-xs text-soft">{t(`research.input.${outcome}`)}</p>
        </li>
      ))}
    </ul>
  );
}

interface ControlsProps {
  current: CurrentTask;
  steerable: boolean;
  sent: Sent | null;
  onSend: (command: Command) => Promise<boolean>;
}

function Controls({ current, steerable, sent, onSend }: ControlsProps) {
  const t = useMessages(researchMessages);
  const [confirming, confirm] = useState(false);
  const busy = sent?.state === "sending";
  return (
    <div className="flex flex-col gap-2">
      {steerable && (
        <TextForm
          label={t("research.input")}
          button={t("research.input.do")}
          icon="steer"
          most={maxSteeringInput}
          disabled={busy}
          onSend={(text) => onSend({ type: "input", input: text })}
        />
      )}
      <div role="status" className="text-soft empty:hidden">
        {busy
          ? t(sent.refusal === null ? "research.sending" : "research.sending_again")
          : current.writesNow && current.phase !== "synthesizing"
            ? t("research.writes_now")
            : null}
      </div>
      <div role="alert" className="empty:hidden">
        {sent?.state === "refused" && (
          <FormError>
            {sent.refusal?.code === "steering_closed"
              ? t("research.closed")
              : sent.refusal?.status === 409 && sent.type === "cancel"
                ? t("research.ended_before")
                : t("research.refused", { detail: sent.refusal?.detail ?? "" })}
          </FormError>
        )}
      </div>
      <div className="flex flex-wrap gap-2">
        {steerable && (
          <Button
            icon="fileText"
            disabled={busy || current.state === "queued"}
            onClick={() => void onSend({ type: "write_now" })}
          >
            {t("research.write_now")}
          </Button>
        )}
        {current.state !== "cancelling" && (
          <Button look="quiet" icon="stop" disabled={busy} onClick={() => confirm(true)}>
            {t("research.cancel")}
          </Button>
        )}
      </div>
      {confirming && (
        <Dialog
          title={t("research.cancel.title")}
          description={t("research.cancel.about")}
          onClose={() => confirm(false)}
        >
          <div className="flex flex-wrap justify-end gap-2">
            <Button data-autofocus="" onClick={() => confirm(false)}>
              {t("research.cancel.keep")}
            </Button>
            <Button
              look="danger"
              onClick={() => {
                confirm(false);
                void onSend({ type: "cancel" });
              }}
            >
              {t("research.cancel.do")}
            </Button>
          </div>
        </Dialog>
      )}
    </div>
  );
}

/** A task that ended without a report. */
export function EndedTask({ task }: { task: Task }) {
  const t = useMessages(researchMessages);
  const { intl } = useLocalization();
  const id = useId();
  const { state, failure, question, plan, progress, spent, created_at } = task;
  const known = failure !== null && `research.failed.${failure.code}` in researchMessages["en"]!;
  return (
    <section
      aria-labelledby={id}
      data-task={task.task_id}
      className="my-4 flex flex-col gap-1 rounded-lg border border-line bg-raised p-4 text-sm"
    >
      <p className={`flex items-center gap-2 ${state === "failed" ? "text-danger" : "text-soft"}`}>
        <Icon name={state === "failed" ? "warning" : "stop"} size={16} />
        {t(`research.state.${state}`)}
        <Faint>{intl.formatDate(created_at, { dateStyle: "medium", timeStyle: "short" })}</Faint>
      </p>
      <p id={id} dir="auto" className="font-semibold wrap-anywhere">
        {question}
      </p>
      {failure !== null && (
        <p className="text-soft">{known ? t(`research.failed.${failure.code}`) : <bdi>{failure.detail}</bdi>}</p>
      )}
      {plan.length > 0 && (
        <Disclosure
          icon={<Icon name="queue" size={16} />}
          label={t("research.ended.about", { sources: progress.sources_kept, tokens: spent.tokens })}
        >
          <ul className="flex list-disc flex-col gap-1 ps-4">
            {plan.map((step) => (
              <li key={step.step_id}>
                <bdi className={step.state === "struck" ? "line-through" : ""}>{step.question}</bdi>{" "}
                <Faint>{t(`research.step.${shownStep(step.state, false)}`)}</Faint>
              </li>
            ))}
          </ul>
        </Disclosure>
      )}
    </section>
  );
}

function Faint({ children }: { children: ReactNode }) {
  return <span className="text-xs text-faint">{children}</span>;
}
