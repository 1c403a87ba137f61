/** What can be trained and called: base models with prices and limits, and the team's adapters with their deployments. */
import { useSearchParams } from "react-router";
import { Heading } from "../design/heading";
import { Tabs } from "../design/tabs";
import { AdaptersPanel } from "./models/adapters";
import { BaseModelsPanel } from "./models/base-models";

export function ModelsPage() {
  const [search, setSearch] = useSearchParams();
  const tabs = [
    { id: "adapters", label: "Adapters", panel: () => <AdaptersPanel /> },
    { id: "base", label: "Base models", panel: () => <BaseModelsPanel /> },
  ];
  return (
    <>
      <Heading title="Models" note="A base model is in memory once. Adapters are trained and served on it; each version keeps its weights for ever." />
      <Tabs label="Kinds of models" tabs={tabs} chosen={search.get("tab") ?? "adapters"} onChoose={(tab) => setSearch({ tab }, { replace: true })} />
    </>
  );
}
