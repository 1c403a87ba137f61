/** What each of the last days has cost, and on what. */
import { useState } from "react";
import { useQuery } from "../../api/use-query";
import { Bars } from "../../design/bars";
import { Card, Definitions } from "../../design/card";
import { Segmented } from "../../design/form";
import { microDollars, words } from "../../design/format";
import { Problem } from "../../design/notice";
import { Skeleton } from "../../design/skeleton";
import { byMeter, everyDay } from "./month";

const SPANS = [["7", "7 days"], ["31", "31 days"], ["90", "90 days"]] as const;
const shortDay = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", timeZone: "UTC" });

export function DailyCosts() {
  const [span, setSpan] = useState<(typeof SPANS)[number][0]>("31");
  const query = useQuery("/api/v1/billing/usage/daily", { query: { days: Number(span) } });
  const days = query.data ? everyDay(query.data.rows, query.data.first_day, Number(span)) : [];
  const most = days.reduce((best, day) => (day.amount > best.amount ? day : best), { day: "", amount: 0 });
  const name = (day: string) => shortDay.format(new Date(`${day}T00:00:00Z`));
  return (
    <Card title="Cost per day" note="Days begin at midnight UTC." actions={<Segmented label="Span" options={SPANS} chosen={span} onChoose={setSpan} />}>
      <Problem of={query.problem} />
      {!query.data && !query.problem && <Skeleton what="costs" />}
      {query.data && (
        <>
          <Bars
            label={`Cost of each of the last ${span} days`}
            bars={days.map(({ day, amount }) => ({ label: name(day), value: amount, text: `${name(day)}: ${microDollars(amount)}` }))}
            top={most.amount ? `${microDollars(most.amount)} on ${name(most.day)}` : "nothing was spent"}
          />
          <Definitions of={byMeter(query.data.rows).map(({ meter, amount }) => [words(meter), microDollars(amount)])} />
        </>
      )}
    </Card>
  );
}
