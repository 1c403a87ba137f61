/** How many samples got which reward. */
import { Bars } from "../../design/bars";
import { Card } from "../../design/card";
import { ratio } from "../../design/format";

export function RewardSpread({ bins }: { bins: { start: number; end: number; count: number }[] }) {
  const bars = bins.map((bin) => ({ label: ratio(bin.start), value: bin.count, text: `${bin.count} from ${ratio(bin.start)} to ${ratio(bin.end)}` }));
  const most = bins.reduce((best, bin) => (bin.count > best.count ? bin : best));
  return (
    <Card title="Rewards">
      <Bars bars={bars} label="Samples by reward" top={`${most.count} samples from ${ratio(most.start)} to ${ratio(most.end)}`} />
    </Card>
  );
}
