// Settings: the budget of tokens, and the tokens of the last 30 days by day, by profile and by conversation.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState, type ReactNode } from "react";
import { conversationQuery } from "../../api/queries";
import { usageQuery, type TokenBudget, type UsageGroup } from "../../api/usage";
import { Refusal } from "../../api/client";
import { Button } from "../../controls/button";
import { NotLoaded } from "../../controls/not-loaded";
import { Icon } from "../../controls/icon";
import { useLocalization, useMessages } from "../../messages/localization";
import { settingsMessages } from "../../messages/settings";
import { Disclosure } from "../../parts/disclosure";
import { useToday } from "../../controls/today";
import { firstShownDay, tokensByDay, tokensOf, topOf } from "./usage-days";

/** How many conversations are listed at first, and how many more by each press of the button. */
const listedConversations = 5;

export function Usage() {
  const t = useMessages(settingsMessages);
  const from = firstShownDay(useToday());
  const days = useQuery(usageQuery("day", from));
  const profiles = useQuery(usageQuery("profile", from));
  const conversations = useQuery(usageQuery("conversation", from));
  const all = [days, profiles, conversations];
  if (all.some(({ isError, data }) => isError && data === undefined))
    return (
      <NotLoaded again={() => all.forEach(({ refetch }) => void refetch())}>{t("settings.usage.not_loaded")}</NotLoaded>
    );
  if (days.data === undefined || profiles.data === undefined || conversations.data === undefined)
    return (
      <p role="status" className="py-3 text-sm text-soft">
        {t("pages.list.loading")}
      </p>
    );
  return (
    <>
      <Budget budget={days.data.budget} />
      {days.data.groups.length === 0 ? (
        <p className="py-3 text-sm text-soft">{t("settings.usage.empty")}</p>
      ) : (
        <>
          <Days groups={days.data.groups} from={from} />
          <Profiles groups={profiles.data.groups} />
          <Conversations groups={conversations.data.groups} complete={conversations.data.complete} />
        </>
      )}
    </>
  );
}

/** The tokens of today, as a text and as a bar of which the used and the reserved part are filled. */
function Budget({ budget }: { budget: TokenBudget | null }) {
  const t = useMessages(settingsMessages);
  const { intl } = useLocalization();
  if (budget === null) return <p className="py-3 text-sm text-soft">{t("settings.usage.no_limit")}</p>;
  const { used, reserved, limit } = budget;
  const share = (tokens: number) => Math.min(100, (100 * tokens) / Math.max(1, limit));
  return (
    <div className="flex flex-col gap-2 py-3 text-sm">
      <p className="font-medium">{t("settings.usage.budget", { used, limit })}</p>
      <svg
        aria-hidden="true"
        viewBox="0 0 100 1"
        preserveAspectRatio="none"
        className={`h-2 w-full rounded-full bg-sunken rtl:-scale-x-100 ${used >= limit ? "text-danger" : "text-accent"}`}
      >
        <rect width={share(used + reserved)} height="1" fill="currentColor" opacity="0.4" />
        <rect width={share(used)} height="1" fill="currentColor" />
      </svg>
      <p className="text-soft">
        {used >= limit ? `${t("settings.usage.exhausted")} ` : ""}
        {t("settings.usage.resets", {
          when: intl.formatDate(budget.resets_at, { dateStyle: "medium", timeStyle: "short" }),
        })}
        {reserved > 0 && ` ${t("settings.usage.reserved", { tokens: reserved })}`}
      </p>
    </div>
  );
}

function Days({ groups, from }: { groups: readonly UsageGroup[]; from: string }) {
  const t = useMessages(settingsMessages);
  const { intl } = useLocalization();
  const days = tokensByDay(groups, from);
  const top = topOf(Math.max(...days.map(({ tokens }) => tokens)));
  const total = groups.reduce((sum, group) => sum + tokensOf(group), 0);
  // The days of the service are those of UTC.
  const dayName = (day: string) => intl.formatDate(day, { dateStyle: "medium", timeZone: "UTC" });
  return (
    <div className="py-3">
      <h3 className="text-sm font-medium">{t("settings.usage.by_day")}</h3>
      <p className="text-sm text-soft">{t("settings.usage.total", { tokens: total })}</p>
      <figure className="mt-3 flex gap-2">
        <div aria-hidden="true" className="flex h-32 flex-col justify-between text-end text-xs text-faint tabular-nums">
          <span>{intl.formatNumber(top, { notation: "compact" })}</span>
          <span>{intl.formatNumber(0)}</span>
        </div>
        <div className="min-w-0 grow">
          <svg
            role="img"
            aria-label={t("settings.usage.chart", { first: dayName(from), last: dayName(days.at(-1)!.day) })}
            viewBox={`0 0 ${days.length} 100`}
            preserveAspectRatio="none"
            className="h-32 w-full border-y border-line text-accent rtl:-scale-x-100"
          >
            {days.map(({ day, tokens }, index) => {
              const height = (100 * tokens) / top;
              return (
                <rect key={day} x={index + 0.12} y={100 - height} width="0.76" height={height} fill="currentColor" />
              );
            })}
          </svg>
          <p aria-hidden="true" className="mt-1 flex justify-between text-xs text-faint">
            <span>{dayName(from)}</span>
            <span>{dayName(days.at(-1)!.day)}</span>
          </p>
        </div>
      </figure>
      <Disclosure icon={<Icon name="bars" size={16} />} label={t("settings.usage.table")}>
        <Table
          label={t("settings.usage.by_day")}
          head={t("settings.usage.day")}
          rows={groups.toReversed().map((group) => ({ group, name: dayName(group.key) }))}
        />
      </Disclosure>
    </div>
  );
}

function Profiles({ groups }: { groups: readonly UsageGroup[] }) {
  const t = useMessages(settingsMessages);
  const nameOf = (key: string) =>
    key === "auto" || key === "balanced" || key === "deep_reasoning" || key === "coding"
      ? t(`pages.profile.${key}`)
      : t("settings.usage.no_profile");
  return (
    <div className="py-3">
      <h3 className="text-sm font-medium">{t("settings.usage.by_profile")}</h3>
      <Table
        label={t("settings.usage.by_profile")}
        head={t("settings.usage.profile")}
        rows={byTokens(groups).map((group) => ({ group, name: nameOf(group.key) }))}
      />
    </div>
  );
}

function Conversations({ groups, complete }: { groups: readonly UsageGroup[]; complete: boolean }) {
  const t = useMessages(settingsMessages);
  const [listed, setListed] = useState(listedConversations);
  if (groups.length === 0) return null;
  return (
    <div className="py-3">
      <h3 className="text-sm font-medium">{t("settings.usage.by_conversation")}</h3>
      {!complete && <p className="text-sm text-soft">{t("settings.usage.incomplete", { count: groups.length })}</p>}
      <Table
        label={t("settings.usage.by_conversation")}
        head={t("settings.usage.conversation")}
        rows={byTokens(groups)
          .slice(0, listed)
          .map((group) => ({ group, name: <ConversationTitle id={group.key} /> }))}
      />
      {listed < groups.length && (
        <Button className="mt-3 w-fit" onClick={() => setListed(listed + listedConversations)}>
          {t("pages.archive.more")}
        </Button>
      )}
    </div>
  );
}

const byTokens = (groups: readonly UsageGroup[]): UsageGroup[] => groups.toSorted((a, b) => tokensOf(b) - tokensOf(a));

function ConversationTitle({ id }: { id: string }) {
  const t = useMessages(settingsMessages);
  const { data, error } = useQuery(conversationQuery(id));
  if (error instanceof Refusal && error.status === 404)
    return <span className="text-soft">{t("settings.usage.deleted")}</span>;
  return (
    <Link
      to="/c/$conversation"
      params={{ conversation: id }}
      dir="auto"
      className="block truncate py-0.5 text-as-parent hover:underline"
    >
      {data === undefined ? t("pages.list.loading") : data.title || t("pages.untitled")}
    </Link>
  );
}

interface TableProps {
  label: string;
  /** The heading of the column with the names. */
  head: string;
  rows: readonly { group: UsageGroup; name: ReactNode }[];
}

function Table({ label, head, rows }: TableProps) {
  const t = useMessages(settingsMessages);
  const { intl } = useLocalization();
  const number = "py-1.5 ps-3 text-end tabular-nums whitespace-nowrap";
  return (
    <table aria-label={label} className="mt-2 w-full text-sm">
      <thead className="text-soft">
        <tr>
          <th scope="col" className="py-1.5 text-start font-normal">
            {head}
          </th>
          {(["answers", "input", "output"] as const).map((column) => (
            <th key={column} scope="col" className={`font-normal ${number}`}>
              <span className="inline-block sm:min-w-24">{t(`settings.usage.${column}`)}</span>
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ group, name }) => (
          <tr key={group.key} className="border-t border-line">
            <th scope="row" className="w-full max-w-0 py-1.5 text-start font-normal">
              {name}
            </th>
            <td className={number}>{intl.formatNumber(group.turns)}</td>
            <td className={number}>{intl.formatNumber(group.input_tokens)}</td>
            <td className={number}>{intl.formatNumber(group.output_tokens)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
