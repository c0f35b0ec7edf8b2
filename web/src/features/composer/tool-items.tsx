// The items of the menu of tools: the web, each other tool, with the reason if it is not available, and the location.
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { api, body } from "../../api/client";
import { locationQuery } from "../../api/consents";
import { chooseTools, forgetTools, useToolChoices, type ToolChoice } from "../../api/tool-choice";
import { MenuCheck, MenuItem, MenuLine } from "../../controls/menu";
import { consentMessages } from "../../messages/consents";
import { useLocalization, useMessages } from "../../messages/localization";
import { writingMessages } from "../../messages/writing";

/** The tools of a conversation; null: those of a conversation that the service does not have yet. */
const toolsQuery = (conversation_id: string | null) =>
  queryOptions({
    queryKey: ["tools", conversation_id],
    queryFn: () => body(api.GET("/tools", { params: { query: conversation_id === null ? {} : { conversation_id } } })),
    select: ({ data }) => data,
  });

const everythingOn: ToolChoice = {};

interface ToolItemsProps {
  conversation: string;
  /** Whether the service has the conversation. */
  isStored: boolean;
  /** Opens the dialog about the location. */
  onLocation: () => void;
}

export function ToolItems({ conversation, isStored, onLocation }: ToolItemsProps) {
  const t = useMessages(writingMessages);
  const { data: tools, isError, refetch } = useQuery(toolsQuery(isStored ? conversation : null));
  const choice = useToolChoices(({ byID }) => byID[conversation] ?? everythingOn);
  useEffect(() => {
    const unknown = choice.off?.filter((name) => tools?.every((tool) => tool.name !== name)) ?? [];
    if (tools !== undefined && unknown.length > 0) forgetTools(conversation, unknown);
  }, [conversation, tools, choice]);
  if (tools === undefined)
    return (
      <MenuItem icon={isError ? "retry" : "clock"} disabled={!isError} keepsOpen onSelect={() => void refetch()}>
        {t(isError ? "composer.tools.failed" : "pages.list.loading")}
      </MenuItem>
    );
  const web = tools.filter(({ kind }) => kind === "web_search");
  const off = choice.off ?? [];
  const { web_search = true } = choice;
  return (
    <>
      {web.length > 0 && (
        <>
          <Check
            checked={web_search}
            reason={web.some(({ available }) => available) ? null : web[0]!.reason}
            onChange={(on) => chooseTools(conversation, { ...choice, web_search: on })}
          >
            {t("composer.tools.web")}
          </Check>
          <MenuLine />
        </>
      )}
      {tools
        .filter(({ kind }) => kind !== "web_search")
        .map(({ name, title, reason }) => (
          <Check
            key={name}
            checked={!off.includes(name)}
            reason={reason}
            onChange={(on) =>
              chooseTools(conversation, { ...choice, off: on ? off.filter((one) => one !== name) : [...off, name] })
            }
          >
            {title}
          </Check>
        ))}
      {tools.some(({ name }) => name === "location") && (
        <>
          <MenuLine />
          <LocationItem conversation={conversation} isStored={isStored} onSelect={onLocation} />
        </>
      )}
    </>
  );
}

interface LocationItemProps {
  conversation: string;
  isStored: boolean;
  onSelect: () => void;
}

function LocationItem({ conversation, isStored, onSelect }: LocationItemProps) {
  const { intl } = useLocalization();
  const t = useMessages(consentMessages);
  const { data: shared = null } = useQuery({ ...locationQuery(conversation), enabled: isStored });
  if (!isStored)
    return (
      <MenuItem icon="globe" disabled hint={t("location.first_message")} onSelect={onSelect}>
        {t("location.share")}
      </MenuItem>
    );
  if (shared === null)
    return (
      <MenuItem icon="globe" onSelect={onSelect}>
        {t("location.share")}
      </MenuItem>
    );
  const time = intl.formatDate(shared.expires_at, { dateStyle: "medium", timeStyle: "short" });
  return (
    <MenuItem icon="globe" hint={t("location.until", { time })} onSelect={onSelect}>
      {t("location.shared")}
    </MenuItem>
  );
}

interface CheckProps {
  checked: boolean;
  /** Why it is not available; null: it is. */
  reason: string | null;
  onChange: (on: boolean) => void;
  children: string;
}

function Check({ checked, reason, onChange, children }: CheckProps) {
  const available = reason === null;
  return (
    <MenuCheck
      checked={checked && available}
      disabled={!available}
      {...(available ? {} : { hint: reason })}
      onChange={onChange}
    >
      {children}
    </MenuCheck>
  );
}
