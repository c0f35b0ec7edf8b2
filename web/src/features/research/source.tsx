// A source of a report: its title with a link, its excerpts, and when it was read.
import { Link } from "@tanstack/react-router";
import { viewFile } from "../../controls/viewed-file";
import { useLocalization, useMessages } from "../../messages/localization";
import { researchMessages } from "../../messages/research";
import { webURL } from "../../parts/links";
import type { KeptSource } from "./queries";

const link = "text-accent underline decoration-1 underline-offset-2 wrap-anywhere";

export function SourceContent({ source, hash = false }: { source: KeptSource; hash?: boolean }) {
  const t = useMessages(researchMessages);
  const { intl } = useLocalization();
  const { number, url, accessed_at, sha256, excerpts } = source;
  const address = webURL(url ?? undefined);
  return (
    <div className="flex flex-col gap-2">
      <div>
        <p className="font-medium wrap-anywhere">
          {number !== null && <span className="text-faint tabular-nums">[{number}] </span>}
          <Title source={source} address={address} />
        </p>
        {address !== undefined && (
          <p dir="ltr" className="text-xs wrap-anywhere text-faint rtl:text-end">
            {hash ? address : new URL(address).host}
          </p>
        )}
      </div>
      {excerpts.map(({ excerpt_id, text, locator }) => (
        <blockquote key={excerpt_id} className="border-s-2 border-edge ps-3">
          <p dir="auto" className="wrap-anywhere whitespace-pre-wrap">
            {text}
          </p>
          {locator !== "" && (
            <footer className="text-xs text-faint">
              <bdi>{locator}</bdi>
            </footer>
          )}
        </blockquote>
      ))}
      <p className="text-xs text-faint">
        {t("research.read_at", { time: intl.formatDate(accessed_at, { dateStyle: "medium", timeStyle: "short" }) })}
        {hash && (
          <>
            {" · SHA-256 "}
            <code dir="ltr" className="break-all">
              {sha256}
            </code>
          </>
        )}
      </p>
    </div>
  );
}

function Title({ source, address }: { source: KeptSource; address: string | undefined }) {
  const { title, file_id, conversation_id } = source;
  const name = <bdi>{title === "" ? (address ?? "") : title}</bdi>;
  if (file_id !== null)
    return (
      <button type="button" className={`${link} text-start`} onClick={() => viewFile({ id: file_id, name: title })}>
        {name}
      </button>
    );
  if (conversation_id !== null)
    return (
      <Link to="/c/$conversation" params={{ conversation: conversation_id }} className={link}>
        {name}
      </Link>
    );
  if (address === undefined) return name;
  return (
    <a href={address} target="_blank" rel="noopener noreferrer nofollow" className={link}>
      {name}
    </a>
  );
}
