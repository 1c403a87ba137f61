/** Base models with prices and limits. */
import { Link } from "react-router";
import { useQuery } from "../../api/use-query";
import type { BaseModel } from "../../api/shapes";
import { Badge } from "../../design/badge";
import { Card, Definitions } from "../../design/card";
import { Empty } from "../../design/empty";
import { count, dollars } from "../../design/format";
import { Problem } from "../../design/notice";
import { Skeleton } from "../../design/skeleton";

const REFRESH_MS = 15_000;

export function BaseModelsPanel() {
  const query = useQuery("/api/v1/rft/models", {}, REFRESH_MS);
  if (!query.data) return <Card>{query.problem ? <Problem of={query.problem} /> : <Skeleton what="base models" />}</Card>;
  if (query.data.models.length === 0) return <Card><Empty title="No pool has a base model. The operator registers one." command="make up MODEL=tiny" /></Card>;
  return <div className="columns">{query.data.models.map((model) => <BaseModelCard key={model.name} model={model} />)}</div>;
}

function BaseModelCard({ model }: { model: BaseModel }) {
  const price = (usd: number) => `${dollars(usd)} per million`;
  return (
    <Card
      title={model.displayName || model.name}
      note={model.description}
      actions={model.atCapacity ? <Badge tone="wait">full: runs wait</Badge> : <Badge tone="good">has room</Badge>}
    >
      <Definitions
        of={[
          ["Name", <code key="name">{model.name}</code>],
          ["Context", `${count(model.contextTokens)} tokens`],
          ["Largest adapter rank", model.rankMax],
          ["Training", price(model.trainingPricePerMtok)],
          ["Input", price(model.inferenceInputPricePerMtok)],
          ["Output", price(model.inferenceOutputPricePerMtok)],
        ]}
      />
      <div><Link className="button" to={`/chat?model=${encodeURIComponent(model.name)}`}>Chat</Link></div>
    </Card>
  );
}
