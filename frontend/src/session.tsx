/** Who is signed in and for which team they act. Knows the chosen team; every request carries it from here on. */
import { type ReactNode, createContext, useCallback, useContext, useEffect, useMemo, useState } from "react";
import { actAs, api } from "./api/client";
import type { SignedIn, Team } from "./api/shapes";
import { forgetAnswers } from "./api/use-query";

const STORED = "rootstock.team";

interface Acting {
  user: SignedIn["user"];
  teams: Team[];
  team: Team;
  isAdmin: boolean;
  chooseTeam: (id: string) => void;
  signOut: () => Promise<void>;
  reload: () => void;
}

const Current = createContext<Acting | null>(null);

export function useSession(): Acting {
  const acting = useContext(Current);
  if (!acting) throw new Error("useSession outside of a session");
  return acting;
}

/** The team chosen last, if the user is still in it; else the personal one. */
function teamOf(teams: Team[], chosen: string | null): Team {
  const team = teams.find((one) => one.id === chosen) ?? teams.find((one) => one.is_personal) ?? teams[0];
  if (!team) throw new Error("a user without a team");
  return team;
}

export function SessionProvider({ session, onChange, children }: { session: SignedIn; onChange: () => void; children: ReactNode }) {
  const [chosen, setChosen] = useState(() => localStorage.getItem(STORED));
  const team = teamOf(session.teams, chosen);
  // Before the first request of any child: effects would come too late.
  actAs({ teamId: team.id });

  useEffect(() => actAs({ onSignedOut: onChange }), [onChange]);
  const chooseTeam = useCallback((id: string) => {
    localStorage.setItem(STORED, id);
    setChosen(id);
  }, []);
  const signOut = useCallback(async () => {
    await api.post("/api/v1/auth/sign-out");
    forgetAnswers();
    actAs({ teamId: "" });
    onChange();
  }, [onChange]);
  const acting = useMemo(
    () => ({ user: session.user, teams: session.teams, team, isAdmin: team.role === "ADMIN", chooseTeam, signOut, reload: onChange }),
    [session, team, chooseTeam, signOut, onChange],
  );
  return <Current value={acting}>{children}</Current>;
}
