import { useQuery } from "@tanstack/react-query";
import { approvalsQuery } from "../api/queries";
import { useFeedStart } from "./account-feed";

/** Returns the calls that wait for the user's approval, once the feed of the account reports their changes. */
export function useApprovals() {
  const loads = useFeedStart(({ over }) => over);
  return useQuery({ ...approvalsQuery, enabled: loads }).data;
}
