// The items of the menu of tools: the web, and each other tool, with the reason if it is not available.
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { api, body } from "../../api/client";
import { chooseTools, forgetTools, useToolChoices, type ToolChoice } from "../../api/tool-choice";
import { MenuCheck, MenuItem, MenuLine } from "../../controls/menu";
import { useLocalization } from "../../messages/localization";

/** The tools of a conversation; null: those of a conversation that the service does not have yet. */
const toolsQuery = (conversation_id: string | null) =>
  queryOptions({
    queryKey: ["tools", conversation_id],
    queryFn: () => body(api.GET("/tools", { params: { query: conversation_id === null ? {} : { conversation_id } } })),
    select: ({ data }) => data,
  });

const everythingOn: ToolChoice = {};

export function ToolItems({ conversation, isStored }: { conversation: string; isStored: boolean }) {
  const { t } = useLocalization();
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
    </>
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
