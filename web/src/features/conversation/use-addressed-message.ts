// Shows the message that the fragment of the URL addresses, for example a result of the search: loads older messages until
// it is loaded, and offers to switch to its branch if the active one does not show it.
import { useLocation, useNavigate } from "@tanstack/react-router";
import { useEffect, useRef, type RefObject } from "react";
import { toast } from "../../controls/toast";
import { useLocalization } from "../../messages/localization";
import type { RowLocator } from "./list";
import { isShown, maxAttempts, scrollTo, steadyFrames } from "./reveal";
import { showBranch } from "./siblings";
import type { ConversationState } from "./use-conversation";
import type { Scroll } from "./use-scroll";

/** The most pages of older messages that are loaded to find a message. */
const maxPages = 50;

export function useAddressedMessage(
  id: string,
  { rows, hasOlder, loadOlder, loading }: ConversationState,
  scroll: Pick<Scroll, "scroller" | "content">,
  locator: RefObject<RowLocator | null>,
): void {
  const { t } = useLocalization();
  const navigate = useNavigate();
  const hash = useLocation({ select: (location) => location.hash });
  const [message, branch] = hash.split("@");
  /** The number of requested pages, and the first row before the last request. */
  const requests = useRef<{ count: number; before: string | null }>({ count: 0, before: null });
  const wanted = message?.startsWith("msg_") === true ? message : null;
  const found = wanted !== null && rows.some(({ key }) => key === wanted);
  const first = rows[0]?.key ?? null;
  useEffect(() => void (requests.current = { count: 0, before: null }), [wanted]);
  useEffect(() => {
    if (wanted === null || found || loading || first === null) return;
    const { count, before } = requests.current;
    if (hasOlder && before === first) return; // the page is being loaded
    if (hasOlder && count < maxPages) {
      requests.current = { count: count + 1, before: first };
      return loadOlder();
    }
    // Without the fragment the message is not looked for again.
    void navigate({ to: "/c/$conversation", params: { conversation: id }, replace: true });
    if (hasOlder) toast(t("transcript.addressed.far"), { kind: "problem" });
    else if (branch === undefined) toast(t("transcript.addressed.missing"), { kind: "problem" });
    else
      toast(t("transcript.addressed.branch"), {
        stays: 20_000,
        action: {
          label: t("transcript.addressed.switch"),
          run: () =>
            void showBranch(id, branch).then(
              () => navigate({ to: "/c/$conversation", params: { conversation: id }, hash: wanted }),
              () => toast(t("transcript.version_refused"), { kind: "problem" }),
            ),
        },
      });
  }, [wanted, branch, found, loading, first, hasOlder, loadOlder, id, navigate, t]);
  useEffect(() => {
    const [view, inside] = [scroll.scroller.current, scroll.content.current];
    if (wanted === null || !found || view === null || inside === null) return;
    let attempts = maxAttempts;
    let steady = 0;
    const update = () => {
      attempts -= 1;
      const row = inside.querySelector<HTMLElement>(`[data-row="${CSS.escape(wanted)}"]`);
      if (row === null) scrollTo(view, locator.current?.locate(wanted, "row") ?? view.scrollTop);
      else steady = isShown(view, row.getBoundingClientRect()) ? steady + 1 : 0;
      if (steady < steadyFrames && attempts > 0) return void (frame = requestAnimationFrame(update));
      row?.focus({ preventScroll: true });
      void navigate({ to: "/c/$conversation", params: { conversation: id }, replace: true });
    };
    let frame = requestAnimationFrame(update);
    return () => cancelAnimationFrame(frame);
  }, [wanted, found, scroll.scroller, scroll.content, locator, id, navigate]);
}
