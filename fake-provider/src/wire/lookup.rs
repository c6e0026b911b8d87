//! One lookup from its last byte to the end of its answer.

use killpoint_model::plan::Reply;
use killpoint_model::provider::Unanswered;

use super::After;
use super::link::{Link, cut};
use crate::answer::error;
use crate::core::{Looked, Query};
use crate::http::Request;
use crate::observer::{Moment, Point};

/// Evaluates and answers a lookup.
pub(super) async fn serve(link: &mut Link, request: Request, query: Query) -> After {
    let target = format!("{} {}", request.method, request.path);
    let connection = link.connection;
    let looked =
        link.shared.step(|core, now_ms| core.look_up(connection, &target, &request.headers, &query, now_ms));
    match answer(link, &request, &query, &looked).await {
        Ok(after) => after,
        Err(how) => {
            link.shared.step(|core, _| core.lookup_unanswered(looked.lookup, how));
            link.close(how).await;
            After::Close
        }
    }
}

async fn answer(
    link: &mut Link,
    request: &Request,
    query: &Query,
    looked: &Looked,
) -> Result<After, Unanswered> {
    let moment = Moment {
        point: Point::Lookup,
        operation: query.operation().to_owned(),
        connection: link.connection,
        attempt: None,
        lookup: Some(looked.lookup),
    };
    link.reach(moment).await?;
    let dialect = link.shared.dialect();
    let response = match looked.plan.reply {
        Reply::Status { code } => error(dialect, code),
        _ => dialect.found(query, looked),
    };
    match looked.plan.reply {
        Reply::Ok | Reply::Status { .. } => {}
        Reply::Fin => return Err(Unanswered::Fin),
        Reply::Rst => return Err(Unanswered::Rst),
        Reply::Cut { at } => {
            link.write(&cut(&response, request.keep_alive, at)).await?;
            return Err(Unanswered::Cut);
        }
        // A lookup has no committed point to be parked at: a hold is a hang.
        Reply::Hang | Reply::Hold => return Err(hang(link).await),
    }
    let (bytes, _) = response.to_bytes(request.keep_alive, request.method == "HEAD");
    // The last byte goes out after the record: a worker that acts on the answer, over another connection, must
    // not be recorded before the answer that it acts on.
    let (most, last) = bytes.split_at(bytes.len().saturating_sub(1));
    link.write(most).await?;
    link.shared.step(|core, _| core.lookup_replied(looked.lookup, response.status));
    if link.write(last).await.is_err() {
        // It left with all but one byte: whether it knew the answer can't be told, and nothing more is said.
        return Ok(After::Close);
    }
    if request.keep_alive {
        return Ok(After::Next);
    }
    link.close(Unanswered::Fin).await;
    Ok(After::Close)
}

async fn hang(link: &mut Link) -> Unanswered {
    let Link { shared, stream, buffer, abandonment, .. } = link;
    tokio::select! {
        biased;
        () = abandonment.wait() => Unanswered::Hang,
        () = Link::client_gone(stream, buffer) => Unanswered::ClientGone,
        () = tokio::time::sleep(shared.hang_limit()) => Unanswered::Hang,
    }
}
